"""Ingest of reports over the API: single, batched and compressed, with receipts."""

from __future__ import annotations

import fcntl
import gzip
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from django.conf import LazySettings, settings
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.utils import timezone

from monitor.models import (
    ApiToken,
    ConflictingReport,
    FormerReporter,
    RawReport,
    Reporter,
    Run,
    Sample,
    Series,
    Suite,
)
from monitor.models.reporter import HOME
from monitor.models.run import State
from monitor.models.token import READ, REPORT, RUN
from monitor.runs.ingest.http_senders import SentReports, ingest_requests, places, sender_commit
from monitor.web.api.http.envelope import MAX_BYTES, MAX_REPORTS, NDJSON
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.waiting import eventually

URL = "/api/v1/reports"
JSON = "application/json"
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def host(settings: LazySettings, tmp_path: Path) -> None:
    """A web host without other senders."""
    settings.VAR_DIR = tmp_path


@pytest.fixture
def sender(db: None) -> User:
    user = User.objects.create_user("reporter")
    user.user_permissions.add(Permission.objects.get(codename="add_rawreport"))
    return user


@pytest.fixture
def client(sender: User) -> Client:
    """A program with a token that may report."""
    return Client(headers=bearer(sender, REPORT))


def bearer(user: User, *scopes: str) -> dict[str, str]:
    home = Reporter.objects.get_or_create(name=HOME)[0] if REPORT in scopes else None
    return {"authorization": f"Bearer {ApiToken.objects.issue(user, 'program', list(scopes), home)}"}


def send(client: Client, body: bytes, content_type: str = JSON, **headers: str) -> Any:
    return client.post(URL, body, content_type, headers=headers)


def problem(response: Any) -> dict[str, Any]:
    assert response["content-type"] == "application/problem+json"
    shown: dict[str, Any] = response.json()
    assert shown["status"] == response.status_code
    return shown


def bodies(noon: datetime, count: int) -> list[bytes]:
    return [wire.to_json(circle_report(noon + number * MINUTE)) for number in range(count)]


def spoiled(noon: datetime, **changes: Any) -> bytes:
    """Return a report with *changes* to its fields."""
    return json.dumps({**json.loads(wire.to_json(circle_report(noon))), **changes}).encode()


def test_a_stored_report_is_answered_with_its_receipt(circle: Series, client: Client, noon: datetime) -> None:
    body = wire.to_json(circle_report(noon))
    answer = send(client, body)
    assert (answer.status_code, answer["content-type"]) == (200, "application/json; charset=utf-8")
    run = str(Run.objects.get().pk)
    receipt = {"run": run, "accepted": True, "duplicate": False, "conflict": False, "error": ""}
    assert answer.json() == {"receipts": [receipt], "refused": []}
    assert Run.objects.get().state == State.PASSED
    assert RawReport.objects.get().body == body


def test_a_duplicate_is_stored_once_and_marked(circle: Series, client: Client, noon: datetime) -> None:
    (body,) = bodies(noon, 1)
    answers = [send(client, body).json() for _ in range(2)]
    assert [answer["receipts"][0]["duplicate"] for answer in answers] == [False, True]
    assert all(answer["receipts"][0]["accepted"] for answer in answers)
    assert Sample.objects.count() == 8


def array(all_of_them: list[bytes]) -> bytes:
    return b"[" + b",\n".join(all_of_them) + b"]"


@pytest.mark.parametrize("packing", ["identity", "gzip", "zstd"])
@pytest.mark.parametrize(("together", "content_type"), [(array, JSON), (b"\n".join, NDJSON)])
def test_each_of_many_reports_is_stored_byte_for_byte(
    circle: Series,
    client: Client,
    noon: datetime,
    packing: str,
    together: Callable[[list[bytes]], bytes],
    content_type: str,
) -> None:
    sent = [*bodies(noon, 3), json.dumps(json.loads(bodies(noon + MINUTE * 9, 1)[0])).encode()]
    packed: dict[str, Callable[[bytes], bytes]] = {
        "identity": bytes,
        "gzip": gzip.compress,
        "zstd": zstd.compress,
    }
    answer = send(client, packed[packing](together(sent)), content_type, **{"content-encoding": packing})
    assert answer.status_code == 200
    assert [receipt["run"] for receipt in answer.json()["receipts"]] == [
        json.loads(body)["run"] for body in sent
    ]
    assert [report.body for report in RawReport.objects.order_by("slot")] == sent


def test_invalid_reports_are_named_and_valid_ones_stored(
    circle: Series, client: Client, noon: datetime
) -> None:
    good, other = bodies(noon, 2)
    sent = [good, spoiled(noon, outcome="fine"), other, wire.to_json(circle_report(noon, series="no"))]
    answer = send(client, array(sent))
    assert answer.status_code == 200
    receipts = answer.json()["receipts"]
    assert [receipt["accepted"] for receipt in receipts] == [True, False, True, False]
    assert answer.json()["refused"] == [1, 3]
    assert receipts[1]["error"].startswith("outcome: expected one of passed")
    assert "'no'" in receipts[3]["error"]
    assert receipts[3]["run"] == str(wire.run_id("no", noon))
    assert RawReport.objects.count() == 2


def test_if_all_are_refused_the_answer_names_the_field_and_has_receipts(
    circle: Series, client: Client, noon: datetime
) -> None:
    answer = send(client, array([spoiled(noon, seconds=-1), spoiled(noon, slot="noon")]))
    assert answer.status_code == 422
    message = problem(answer)
    assert (message["code"], len(message["receipts"])) == ("refused", 2)
    assert "seconds: expected a finite number >= 0, got -1" in message["detail"]
    assert "slot" in message["receipts"][1]["error"]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version 2 is not supported; the supported version is 1"),
        ({"version": "1"}, "version: expected an integer"),
        ({"run": "00000000-0000-0000-0000-000000000000"}, "run: expected"),
        ({"stages": [{"name": "init"}]}, "stages[0].category"),
        ({"series": "a\x00b"}, "series: expected text without NUL"),
        ({"x": "\ud800"}, "x: expected text without NUL and lone surrogates"),
        ({"parameters": {"n": 10**30}}, "parameters.n: expected an integer of 64 bits"),
    ],
)
def test_a_refused_report_names_field_and_reason(
    circle: Series, client: Client, noon: datetime, changes: dict[str, Any], message: str
) -> None:
    answer = send(client, spoiled(noon, **changes))
    assert answer.status_code == 422
    assert message in problem(answer)["detail"]
    assert not RawReport.objects.exists()


@pytest.mark.parametrize(
    ("body", "content_type", "encoding", "status", "message"),
    [
        (b"", JSON, "", 422, "not JSON"),
        (b"[]", JSON, "", 400, "got none"),
        (b"\n\n", NDJSON, "", 400, "got none"),
        (b"[1]", JSON, "", 422, "expected a JSON object, got 1"),
        (b"[{", JSON, "", 400, "reports[0]: not JSON"),
        (b"7", JSON, "", 422, "expected a JSON object, got 7"),
        (b"x" * (MAX_BYTES + 1), JSON, "", 413, f"{MAX_BYTES} bytes"),
        (gzip.compress(bytes(MAX_BYTES + 1), 1, mtime=0), JSON, "gzip", 413, f"{MAX_BYTES} bytes"),
        (b"{}\n" * (MAX_REPORTS + 1), NDJSON, "", 413, f"{MAX_REPORTS} reports"),
        (b" " * (wire.MAX_BYTES + 1), JSON, "", 422, f"{wire.MAX_BYTES} bytes"),
        (b"not packed", JSON, "gzip", 400, "cannot be decompressed by gzip"),
        (b"not packed", JSON, "zstd", 400, "cannot be decompressed by zstd"),
        (b"{}", JSON, "br", 415, "gzip, zstd, identity"),
        (b"{}", "text/plain", "", 415, "application/x-ndjson"),
        (b"a=1", "application/x-www-form-urlencoded", "", 415, "application/json"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_an_unsupported_body_is_answered_with_what_is_supported(
    circle: Series, client: Client, body: bytes, content_type: str, encoding: str, status: int, message: str
) -> None:
    answer = send(client, body, content_type, **({"content-encoding": encoding} if encoding else {}))
    assert answer.status_code == status
    assert message in problem(answer)["detail"]
    assert not Run.objects.exists()


def test_bodies_above_the_form_limit_of_django_are_accepted(
    circle: Series, client: Client, noon: datetime
) -> None:
    log = [wire.LogLine("info", 0.0, "x" * 200_000)]
    sent = [wire.to_json(circle_report(noon + number * MINUTE, log=log)) for number in range(15)]
    body = array(sent)
    assert len(body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert send(client, body).json()["refused"] == []


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer gcast_wrong", "Basic dmlld2VyOng=", "Bearer \x00"])
def test_reports_need_a_token(circle: Series, noon: datetime, header: str) -> None:
    client = Client(enforce_csrf_checks=True, headers={"authorization": header})
    answer = send(client, bodies(noon, 1)[0])
    assert answer.status_code == 401
    assert problem(answer)["code"] == "not_authenticated"
    assert not Run.objects.exists()


def test_reports_need_the_scope_and_the_permission(circle: Series, sender: User, noon: datetime) -> None:
    (body,) = bodies(noon, 1)
    other = User.objects.create_user("other")
    for headers in (bearer(sender, READ, RUN), bearer(other, REPORT)):
        answer = send(Client(headers=headers), body)
        assert answer.status_code == 403
        assert "'report'" in problem(answer)["detail"]
    assert not Run.objects.exists()


def test_a_token_with_the_scope_report_does_not_read(client: Client) -> None:
    assert client.get("/api/v1/runs").status_code == 403


def test_a_session_of_a_browser_sends_no_reports(circle: Series, sender: User, noon: datetime) -> None:
    client = Client()
    client.force_login(sender)
    assert send(client, bodies(noon, 1)[0]).status_code == 401
    assert not Run.objects.exists()


def test_a_token_without_a_reporter_sends_nothing(circle: Series, sender: User, noon: datetime) -> None:
    token = ApiToken.objects.issue(sender, "program", [REPORT])
    answer = send(Client(headers={"authorization": f"Bearer {token}"}), bodies(noon, 1)[0])
    assert answer.status_code == 403
    assert problem(answer)["code"] == "no_reporter"
    assert "manage.py token issue USER --scope report --reporter NAME" in problem(answer)["detail"]
    assert not Run.objects.exists()


def test_a_token_writes_no_series_of_another_reporter(circle: Series, client: Client, noon: datetime) -> None:
    Series.objects.update(reporter=Reporter.objects.create(name="ncsa"))
    FormerReporter.objects.all().delete()
    in_its_name = wire.to_json(circle_report(noon, reporter="ncsa"))
    in_our_name = wire.to_json(circle_report(noon))
    for body, error in (
        (in_its_name, "reporter: expected 'home', the reporter of the credential, got 'ncsa'"),
        (in_our_name, "series: no series 'circle' is assigned to the reporter 'home' at this slot"),
    ):
        answer = send(client, body)
        assert answer.status_code == 422
        assert problem(answer)["detail"] == error
    assert not Run.objects.exists()


def test_a_forged_report_takes_no_slot_ahead_from_the_genuine_one(
    circle: Series, client: Client, noon: datetime
) -> None:
    """The attack: report a slot 24 h ahead, so that the genuine report counts as a duplicate."""
    slot = timezone.now().replace(microsecond=0) + timedelta(hours=23)
    forged = circle_report(slot, reason="forged")
    answer = send(client, wire.to_json(forged))
    assert answer.status_code == 422
    assert "is more than 5 minutes after now" in problem(answer)["detail"]
    assert not Run.objects.exists()


def test_a_different_report_of_a_reported_slot_is_a_conflict_and_kept_beside(
    circle: Series, client: Client, noon: datetime
) -> None:
    first, other = (wire.to_json(circle_report(noon, ring_seconds=seconds)) for seconds in (4.0, 5.0))
    receipts = [send(client, body).json()["receipts"][0] for body in (first, first, other, other)]
    assert [(each["accepted"], each["duplicate"], each["conflict"]) for each in receipts] == [
        (True, False, False),
        (True, True, False),
        (True, False, True),
        (True, False, True),
    ]
    assert RawReport.objects.get().body == first
    kept = ConflictingReport.objects.get()
    assert (kept.body, kept.reporter, kept.series, kept.slot) == (other, "home", circle, noon)


def test_reports_of_several_reporters_in_a_group_are_stored_under_their_own_rights(
    circle: Series, noon: datetime
) -> None:
    ncsa = circle_report(noon + MINUTE, reporter="ncsa")
    own, forged, foreign = (wire.to_json(report) for report in (circle_report(noon), ncsa, ncsa))
    results = ingest_requests(
        [
            SentReports([own], "home", None),
            SentReports([forged], "home", None),
            SentReports([foreign, own], "ncsa", None),
        ]
    )
    assert [
        [receipt.accepted for receipt in receipts] for receipts in results if isinstance(receipts, list)
    ] == [
        [True],
        [False],
        [False, False],
    ]
    assert [run.slot for run in Run.objects.all()] == [noon]


def test_reports_of_an_invisible_series_are_refused(
    circle: Series, client: Client, sender: User, noon: datetime
) -> None:
    staff = Group.objects.create(name="staff")
    Suite.objects.get().viewers.add(staff)
    (body,) = bodies(noon, 1)
    answer = send(client, body)
    assert answer.status_code == 422
    assert problem(answer)["detail"].startswith("series: no series 'circle' is assigned to the reporter")
    sender.groups.add(staff)
    assert send(client, body).status_code == 200


def test_the_permission_may_come_from_a_group(circle: Series, noon: datetime) -> None:
    reporters = Group.objects.create(name="reporters")
    reporters.permissions.add(Permission.objects.get(codename="add_rawreport"))
    member, guest, root = (User.objects.create_user(name) for name in ("member", "guest", "root"))
    member.groups.add(reporters)
    User.objects.filter(pk=root.pk).update(is_superuser=True)
    for user, status in ((member, 200), (guest, 403), (root, 200)):
        assert send(Client(headers=bearer(user, REPORT)), bodies(noon, 1)[0]).status_code == status


def test_expired_tokens_and_those_of_inactive_users_are_refused(
    circle: Series, client: Client, noon: datetime
) -> None:
    now = timezone.now()
    for expires_at, is_active, status in (
        (now - MINUTE, True, 401),
        (now + MINUTE, False, 401),
        (now + MINUTE, True, 200),
    ):
        ApiToken.objects.update(expires_at=expires_at)
        User.objects.update(is_active=is_active)
        assert send(client, bodies(noon, 1)[0]).status_code == status


def test_a_request_beyond_the_limit_is_asked_to_retry(circle: Series, client: Client, noon: datetime) -> None:
    (body,) = bodies(noon, 1)
    with ExitStack() as others:
        locks = [others.enter_context(place.open("w")) for place in places()]
        for lock in locks:
            fcntl.flock(lock, fcntl.LOCK_EX)
        answer = send(client, body)
        assert (answer.status_code, answer["Retry-After"]) == (503, "1")
        assert problem(answer)["code"] == "busy"
        assert not Run.objects.exists()
        fcntl.flock(locks[-1], fcntl.LOCK_UN)
        assert send(client, body).status_code == 200
        assert send(client, body).status_code == 200  # a finished request frees its place


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_are_stored_in_groups_of_limited_size(
    circle: Series, client: Client, settings: LazySettings, noon: datetime
) -> None:
    settings.GRIDCAST_RECEIVE_WAITING = 3
    first, *others, one_more = bodies(noon, 5)
    depot = connection.copy()

    def deliver(body: bytes) -> int:
        try:
            return int(send(client, body).status_code)
        finally:
            connection.close()

    def is_stopped() -> bool:
        cursor.execute("SELECT FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))")
        return bool(cursor.rowcount > 0)

    with ThreadPoolExecutor(4) as threads:
        with depot.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("LOCK TABLE monitor_rawreport IN ACCESS EXCLUSIVE MODE")
            answers = [threads.submit(deliver, first)]
            assert eventually(is_stopped)
            answers += [threads.submit(deliver, body) for body in others]
            assert eventually(lambda: sender_commit.queued == 3)
            refused = send(client, one_more)
            cursor.execute("COMMIT")
        assert [answer.result() for answer in answers] == [200] * 4
    assert (refused.status_code, problem(refused)["code"]) == (503, "busy")
    with depot.cursor() as cursor:
        cursor.execute("SELECT count(*), count(DISTINCT xmin::text) FROM monitor_rawreport")
        assert cursor.fetchone() == (4, 2)
    depot.close()


def test_the_openapi_document_has_bodies_and_problems_of_reports(db: None) -> None:
    shown = Client().get("/api/v1/openapi.json").json()["paths"]["/api/v1/reports"]["post"]
    assert set(shown["requestBody"]["content"]) == {JSON, NDJSON}
    assert {"200", "400", "401", "403", "413", "415", "422", "503"} <= set(shown["responses"])
