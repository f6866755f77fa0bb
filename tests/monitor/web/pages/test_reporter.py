"""The page of one reporter: everything it said, harmless whatever it is, and the actions of managers."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client, override_settings

from monitor.models import (
    Alert,
    AlertRule,
    ConflictCount,
    EnrolmentCode,
    LatestRun,
    Reporter,
    ReporterAssignment,
    Series,
)
from monitor.models.run import State
from tests.monitor import reporter_rows
from tests.monitor.outside import outside_reporter, reported_series
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

HTMX = {"HX-Request": "true"}
PATH = "/reporters/ncsa/"
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SCRIPT = "<script>alert(1)</script>'\"&"


@pytest.fixture
def ncsa(grid: Grid, now: datetime) -> Reporter:
    """An enrolled reporter that runs Circle."""
    reporter = reporter_rows.enrolled("ncsa", now - HOUR)
    Series.objects.filter(pk=grid.circle.pk).update(reporter=reporter)
    return reporter


@pytest.fixture
def manager(db: None) -> Client:
    user, browser = builders.user("manager"), Client()
    user.user_permissions.add(Permission.objects.get(codename="manage_reporters"))
    browser.force_login(user)
    return browser


def text(client: Client, path: str = PATH) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_before_the_first_exchange_every_section_says_that_it_is_empty(
    ncsa: Reporter, manager: Client
) -> None:
    ncsa.keys.all().delete()
    shown = text(manager)
    for part in (
        "not enrolled",
        "Not known before the first exchange",
        "No run has ended in the last 7 days",
        "None in the last 7 days",
        "No messages",
        "No records received",
        "Not enrolled yet",
        "none issued",
    ):
        assert part in shown, part


def test_the_page_of_a_worker_has_no_sections_of_agents(grid: Grid, client: Client) -> None:
    shown = text(client, "/reporters/home/")
    assert "Celery worker" in shown
    assert 'href="/series/gather-main/"' in shown
    for part in ("Site policy", "Chains", "Messages", "Assignment", "Enrolment"):
        assert part not in shown, part


def test_programs_outside_are_seen_by_their_reports(client: Client, now: datetime) -> None:
    """They send no heartbeats, so they are never silent."""
    series = reported_series()
    outside_reporter(series)
    assert "never seen" in text(client, "/reporters/outside/")
    LatestRun.objects.create(series=series, ended_at=now - 3 * HOUR)
    shown = text(client, "/reporters/outside/")
    assert "reporting</span>" in shown
    assert "3 h ago" in shown


def test_conflicts_are_counted(ncsa: Reporter, client: Client, now: datetime) -> None:
    assert "Conflicts" not in text(client)
    ConflictCount.objects.create(reporter="ncsa", total=1234, last_at=now)
    assert re.search(r"Conflicts</summary>.*1,234 reports, the last", text(client), re.DOTALL)
    assert client.get("/api/v1/reporters/ncsa").json()["conflicts"]["total"] == 1234


def test_state_assignment_messages_and_chains_are_shown(
    ncsa: Reporter, client: Client, now: datetime
) -> None:
    ReporterAssignment.objects.create(
        reporter=ncsa, version=8, document="{}", content_sha256="", issued_at=now - HOUR
    )
    reporter_rows.status(
        ncsa,
        now,
        assignment_version=7,
        assignment_error="series gather: unknown probe",
        in_flight=3,
        messages=[
            {"at": "2026-03-04T11:00:00Z", "level": "info", "text": "started"},
            {"at": "2026-03-04T11:30:00Z", "level": "warning", "text": "refused assignment 8"},
        ],
    )
    chain = reporter_rows.chain(ncsa, now, declared=5)
    for sequence in (0, 1, 3):
        reporter_rows.record(chain, sequence, now)
    shown = text(client)
    assert ">2026-03-04 11:30:00 <" in shown
    for part in ("version 8", "version 7", "outdated", "series gather: unknown probe", str(chain.uuid)):
        assert part in shown, part
    assert re.findall(r'data-label="(\w+)">(\d+)<', shown) == [
        ("Declared", "5"),
        ("Received", "3"),
        ("Outstanding", "2"),
    ]
    assert shown.index("refused assignment 8") < shown.index(">started<")


def test_the_policy_says_first_what_the_site_forbids(ncsa: Reporter, client: Client, now: datetime) -> None:
    rules = {"caps": {"concurrent_runs": 1}, "probes": {"forbid": ["madbench", "gather"]}}
    reporter_rows.status(
        ncsa, now, policy_status="in_force", policy_summary={"disclosure": "full", "rules": rules}
    )
    shown = text(client)
    assert "<dt>This site forbids probes</dt><dd>madbench, gather</dd>" in shown
    assert shown.index("This site forbids") < shown.index("at most 1</dd>")


def test_latest_runs_and_slots_skipped_by_policy_are_listed(
    ncsa: Reporter, grid: Grid, client: Client, now: datetime
) -> None:
    builders.not_run(grid.circle, now - HOUR, State.SKIPPED, "policy: the probe circle is forbidden")
    builders.not_run(grid.circle, now - 2 * HOUR, State.SKIPPED, "paused by ada: disks")
    builders.not_run(grid.gather, now - HOUR, State.FAILED, "not a run of this reporter")
    shown = text(client)
    skipped = shown.split('id="skipped-title"')[1].split("</section>")[0]
    assert "policy: the probe circle is forbidden" in skipped
    assert "paused by ada" not in skipped
    assert "paused by ada" in shown
    assert "not a run of this reporter" not in shown


def test_whatever_a_reporter_says_is_harmless(ncsa: Reporter, manager: Client, now: datetime) -> None:
    ncsa.keys.all().delete()
    reporter_rows.key(ncsa, now, hostname=SCRIPT, method=SCRIPT[:20], revoked_by=SCRIPT, revoked_at=now)
    reporter_rows.key(ncsa, now, hostname=SCRIPT)
    reporter_rows.status(
        ncsa,
        now,
        hostname=SCRIPT,
        version=SCRIPT,
        python=SCRIPT,
        archive_sha256=SCRIPT,
        assignment_error=SCRIPT,
        policy_status="unreadable",
        policy_sha256=SCRIPT,
        policy_error=SCRIPT,
        policy_summary={
            SCRIPT: SCRIPT,
            "disclosure": SCRIPT,
            "rules": {SCRIPT: {SCRIPT: SCRIPT, "forbid": [SCRIPT, {SCRIPT: [SCRIPT]}]}, "caps": SCRIPT},
        },
        messages=[{"at": SCRIPT, "level": SCRIPT, "text": SCRIPT}, SCRIPT, None, {"text": [SCRIPT]}],
        spool_records=10**18,
        spool_bytes=10**18,
        clock_offset_seconds=float("inf"),
        clock_bound_seconds=float("nan"),
        spool_oldest_at=now,
    )
    rule = AlertRule.objects.create(name="r", title=SCRIPT, condition="lag_seconds", threshold=600)
    Alert.objects.create(rule=rule, reporter=ncsa, since=now, opened_at=now, text=SCRIPT)
    for path in (PATH, "/reporters/", "/alerts/"):
        shown = text(manager, path)
        assert "<script>alert" not in shown
        assert "&lt;script&gt;" in shown.lower()
        assert not re.search(r'="[^"]*<', shown.split('id="content"')[1])


def test_open_alerts_are_shown_and_counted_in_the_navigation(
    ncsa: Reporter, client: Client, now: datetime
) -> None:
    rule = AlertRule.objects.create(name="r", condition="lag_seconds", threshold=600)
    Alert.objects.create(rule=rule, reporter=ncsa, since=now, opened_at=now, text="it lags")
    shown = text(client)
    assert "It lags" in shown
    assert '<span class="count">1<span class="visually-hidden"> open alert</span></span>' in shown


@pytest.mark.parametrize("summary", [[], "text", 7, None, {"rules": 7}, {"rules": {"caps": {"x": 1e300}}}])
def test_any_policy_summary_can_be_shown(
    ncsa: Reporter, client: Client, now: datetime, summary: object
) -> None:
    status = reporter_rows.status(ncsa, now)
    status.policy_summary = summary if summary is not None else {"x": None}
    status.save()
    text(client)


def test_an_open_page_is_updated_only_if_something_changed(
    ncsa: Reporter, client: Client, now: datetime
) -> None:
    part = client.get(PATH, headers=HTMX).content.decode()
    assert "<html" not in part
    seen = part.split("seen=")[1].split('"')[0]
    assert client.get(PATH, {"seen": seen}, headers=HTMX).status_code == 204
    chain = reporter_rows.chain(ncsa, now, declared=1)
    reporter_rows.record(chain, 0, now)
    assert client.get(PATH, {"seen": seen}, headers=HTMX).status_code == 200


def test_a_manager_gets_a_code_that_is_shown_once(ncsa: Reporter, manager: Client, now: datetime) -> None:
    with override_settings(GRIDCAST_URL="https://gridcast.example.org"):
        answer = manager.post(f"{PATH}code/")
    shown = answer.content.decode()
    found = re.search(
        r"python3 gridcast-reporter.pyz enrol https://gridcast.example.org"
        r" ((?:[A-Z2-7]{4}-){4}[A-Z2-7]{4}) --force<",
        shown,
    )
    assert found
    assert "no-store" in answer["Cache-Control"]
    assert found[1] not in text(manager)
    assert "An enrolment code is open" in text(manager)
    code = EnrolmentCode.objects.get()
    assert (code.reporter, code.created_by) == (ncsa, manager_of(manager))
    assert timedelta(minutes=14) < code.expires_at - now < timedelta(minutes=17)


def manager_of(client: Client) -> object:
    return client.get(PATH).context["user"]


def test_without_a_configured_address_the_command_has_that_of_the_request(
    ncsa: Reporter, manager: Client
) -> None:
    assert "enrol http://testserver " in manager.post(f"{PATH}code/").content.decode()


def test_the_first_enrolment_replaces_none(ncsa: Reporter, manager: Client) -> None:
    ncsa.keys.all().delete()
    assert "--force" not in manager.post(f"{PATH}code/").content.decode()


def test_a_worker_gets_no_code(grid: Grid, manager: Client) -> None:
    answer = manager.post("/reporters/home/code/", follow=True)
    assert "it is a Celery worker and needs no code" in answer.content.decode()
    assert not EnrolmentCode.objects.exists()


def test_a_manager_revokes_the_key_with_a_confirmation(
    ncsa: Reporter, manager: Client, now: datetime
) -> None:
    assert "Not revoked" in manager.post(f"{PATH}revoke/", follow=True).content.decode()
    assert ncsa.keys.active().exists()
    shown = manager.post(f"{PATH}revoke/", {"confirmed": "ncsa"}, follow=True).content.decode()
    assert "The key of ncsa is revoked" in shown
    key = ncsa.keys.get()
    assert (key.revoked_by, key.revoked_at is None) == ("manager", False)
    assert "by manager" in shown
    again = manager.post(f"{PATH}revoke/", {"confirmed": "ncsa"}, follow=True).content.decode()
    assert "has no valid key" in again


@pytest.mark.parametrize("action", ["code", "revoke"])
def test_actions_need_the_permission_and_a_form(
    ncsa: Reporter, client: Client, manager: Client, action: str
) -> None:
    shown = text(client)
    for part in ("Enrolment code", "Revoke", "Keys", "login.ncsa.example.org"):
        assert part not in shown, part
    assert client.post(f"{PATH}{action}/", {"confirmed": "ncsa"}).status_code == 403
    assert manager.get(f"{PATH}{action}/").status_code == 405
    assert ncsa.keys.filter(revoked_at=None).exists()
    assert not EnrolmentCode.objects.exists()
