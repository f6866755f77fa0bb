"""Reporters over the API: what is listed, for whom, and creation, codes and revocation."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from monitor.models import ApiToken, EnrolmentCode, Reporter, ReporterKey, Series, Site
from monitor.models.token import MANAGE, READ
from tests.monitor import reporter_rows
from tests.monitor.runs.fleet.agents import SiteAgent

URL = "/api/v1/reporters"


def program(*scopes: str, may_manage: bool = False) -> Client:
    user = User.objects.create_user(f"user-{User.objects.count()}")
    if may_manage:
        user.user_permissions.add(Permission.objects.get(codename="manage_reporters"))
    token = ApiToken.objects.issue(user, "program", list(scopes))
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def reader(db: None) -> Client:
    return program(READ)


@pytest.fixture
def manager(db: None) -> Client:
    return program(READ, MANAGE, may_manage=True)


@pytest.fixture
def ncsa(circle: Series, noon: datetime) -> Reporter:
    """An enrolled reporter that runs Circle."""
    reporter = reporter_rows.enrolled("ncsa", noon, capacity=2)
    Series.objects.update(reporter=reporter)
    return reporter


def test_a_reporter_has_state_and_what_it_said(ncsa: Reporter, reader: Client) -> None:
    seen_at = timezone.now().replace(microsecond=0)
    reporter_rows.status(
        ncsa, seen_at, spool_records=2, spool_bytes=99, spool_oldest_at=seen_at - timedelta(seconds=50)
    )
    (listed,) = [each for each in reader.get(URL).json()["reporters"] if each["name"] == "ncsa"]
    agent = listed.pop("agent")
    assert listed == {
        "name": "ncsa",
        "site": "ncsa",
        "capacity": 2,
        "state": "reporting",
        "seen_at": f"{seen_at:%Y-%m-%dT%H:%M:%SZ}",
        "series_count": 1,
        "run_counts": {},
        "hold": "",
        "alert_count": 0,
    }
    assert agent["spool"]["lag_seconds"] == pytest.approx(50 - 0.012)
    assert agent["clock"] == {"offset_seconds": 0.012, "bound_seconds": 0.034}
    assert agent["policy"]["status"] == "absent"
    assert agent["hostname"] == "login.ncsa.example.org"


def test_details_have_series_assignment_chains_and_messages(
    ncsa: Reporter, reader: Client, manager: Client, noon: datetime
) -> None:
    message = {"at": "2026-03-01T12:00:00Z", "level": "info", "text": "<b>"}
    reporter_rows.status(ncsa, noon, messages=[message], policy_summary={"rules": {}}, assignment_version=3)
    chain = reporter_rows.chain(ncsa, noon, declared=2)
    reporter_rows.record(chain, 0, noon)
    details = reader.get(f"{URL}/ncsa").json()
    assert details["series"] == ["circle"]
    assert details["messages"] == [message]
    assert details["policy_summary"] == {"rules": {}}
    assert details["assignment"] == {"newest": 0, "issued_at": None, "in_force": 3, "error": ""}
    assert [(row["declared"], row["received"]) for row in details["chains"]] == [(2, 1)]
    assert details["keys"] is None
    (key,) = manager.get(f"{URL}/ncsa").json()["keys"]
    assert (key["method"], key["revoked_at"]) == ("openssl", None)


def test_numbers_that_are_none_become_null(ncsa: Reporter, reader: Client, noon: datetime) -> None:
    reporter_rows.status(ncsa, noon, clock_offset_seconds=float("nan"), clock_bound_seconds=float("inf"))
    agent = reader.get(f"{URL}/ncsa").json()["agent"]
    assert agent["clock"] == {"offset_seconds": None, "bound_seconds": None}


def test_what_is_not_for_you_is_not_there(
    ncsa: Reporter, circle: Series, reader: Client, manager: Client
) -> None:
    circle.suite.viewers.add(Group.objects.create(name="physicists"))
    assert reader.get(URL).json()["reporters"] == []
    assert reader.get(f"{URL}/ncsa").json()["code"] == "unknown_reporter"
    (listed,) = [each for each in manager.get(URL).json()["reporters"] if each["name"] == "ncsa"]
    assert listed["series_count"] == 0
    assert manager.get(f"{URL}/ncsa").json()["series"] == []


def test_a_manager_creates_a_reporter(circle: Series, manager: Client) -> None:
    Site.objects.create(name="sdsc")
    answer = manager.post(URL, {"name": "new", "site": "sdsc"}, content_type="application/json")
    assert answer.status_code == 201
    assert (answer.json()["state"], answer.json()["capacity"]) == ("not_enrolled", 4)
    assert Reporter.objects.get(name="new").is_remote


@pytest.mark.parametrize(
    ("order", "status", "code"),
    [
        ({"name": "ncsa", "site": "ncsa"}, 409, "name_taken"),
        ({"name": "a b", "site": "ncsa"}, 422, "invalid"),
        ({"name": "new", "site": "atlantis"}, 422, "invalid"),
        ({"name": "new", "site": "ncsa", "capacity": 0}, 422, "invalid"),
        ({"name": "new"}, 422, "invalid"),
    ],
)
def test_an_invalid_reporter_is_refused(
    ncsa: Reporter, manager: Client, order: dict[str, object], status: int, code: str
) -> None:
    answer = manager.post(URL, order, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_manager_gets_a_code_and_the_command(ncsa: Reporter, manager: Client) -> None:
    answer = manager.post(f"{URL}/ncsa/codes")
    code = answer.json()
    assert answer.status_code == 201
    assert re.fullmatch(r"(?:[A-Z2-7]{4}-){4}[A-Z2-7]{4}", code["code"])
    assert code["command"] == f"python3 gridcast-reporter.pyz enrol http://testserver {code['code']}"
    assert EnrolmentCode.objects.get().reporter == ncsa


def test_a_worker_gets_no_code(circle: Series, manager: Client) -> None:
    answer = manager.post(f"{URL}/home/codes")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_remote")


def test_a_manager_revokes_a_reporter(ncsa: Reporter, manager: Client) -> None:
    assert manager.post(f"{URL}/ncsa/revoke").json() == {"revoked_keys": 1}
    assert not ReporterKey.objects.active().exists()
    assert manager.post(f"{URL}/ncsa/revoke").json() == {"revoked_keys": 0}
    assert manager.get(f"{URL}/ncsa").json()["state"] == "revoked"


@pytest.mark.parametrize("path", ["", "/ncsa/codes", "/ncsa/revoke"])
def test_changes_need_both_the_permission_and_the_scope(ncsa: Reporter, path: str) -> None:
    order = {} if path else {"name": "new", "site": "ncsa"}
    for client in (program(READ, may_manage=True), program(READ, MANAGE)):
        answer = client.post(URL + path, order, content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    assert Client().post(URL + path, order, content_type="application/json").status_code == 401
    assert ReporterKey.objects.active().count() == 1
    assert not EnrolmentCode.objects.exists()


def test_an_unknown_reporter_is_not_found(manager: Client) -> None:
    for name, status in (("atlantis", 404), ("a%00b", 422)):
        assert manager.get(f"{URL}/{name}").status_code == status
        assert manager.post(f"{URL}/{name}/codes").status_code == status


def test_from_the_code_to_the_revocation(circle: Series, manager: Client, tmp_path: Path) -> None:
    """A code enrols an agent, the pages show what it says, and a revocation ends its requests."""
    Site.objects.create(name="sdsc")
    manager.post(URL, {"name": "sdsc", "site": "sdsc"}, content_type="application/json")
    agent = SiteAgent(Reporter.objects.get(name="sdsc"), tmp_path)
    assert agent.enrol(manager.post(f"{URL}/sdsc/codes").json()["code"]).status_code == 200
    assert manager.get(f"{URL}/sdsc").json()["state"] == "never_seen"
    script = "<script>alert(1)</script>"
    summary = {
        "disclosure": script,
        "rules": {"probes": {"forbid": ["madbench", script]}, script: {script: [script]}},
    }
    policy = {"status": "in_force", "sha256": "ab" * 32, "error": script, "summary": summary}
    at = timezone.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    messages = [{"at": at, "level": "warning", "text": script}]
    answer = agent.exchange(
        hostname=script, version=script, python=script, policy=policy, messages=messages,
        assignment={"version": 0, "error": script},
    )  # fmt: skip
    assert answer.status_code == 200
    details = manager.get(f"{URL}/sdsc").json()
    assert (details["state"], details["agent"]["hostname"]) == ("reporting", script)
    browser = Client()
    browser.force_login(User.objects.create_superuser("admin"))
    for path in ("/reporters/", "/reporters/sdsc/"):
        shown = browser.get(path).content.decode()
        assert "&lt;script&gt;ale" in shown  # the list cuts long words
        assert script not in shown
    assert "This site forbids probes</dt><dd>madbench, " in shown
    assert manager.post(f"{URL}/sdsc/revoke").json() == {"revoked_keys": 1}
    refused = agent.exchange()
    assert (refused.status_code, refused.json()["code"]) == (401, "revoked")
