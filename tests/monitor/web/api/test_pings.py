"""Pings over HTTP: by a key in the address and by a token, and the one line of curl of docs/reports.md."""

from __future__ import annotations

import html
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from monitor.core.env import ROOT
from monitor.models import ConflictCount, PingKey, RawReport, Run, Series
from monitor.models.run import State
from tests.databases import blocks_another_session
from tests.monitor.outside import NAME, expanded, reported_series, sender
from tests.waiting import eventually

DOCS = Path(__file__).resolve().parents[4] / "docs"
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def host(settings: LazySettings, tmp_path: Path) -> None:
    """A web host without other senders."""
    settings.VAR_DIR = tmp_path


@pytest.fixture
def series(db: None) -> Series:
    """A series without a schedule."""
    return reported_series()


@pytest.fixture
def url(series: Series) -> str:
    """The address of pings of the series, with a key in it."""
    _, text = PingKey.objects.issue(series, name="cron", who="ada", now=timezone.now())
    return f"/api/v1/ping/{text}"


def answer(response: Any) -> Any:
    assert response.status_code == 200, response.content
    return response.json()


def test_a_ping_reports_a_passed_run(client: Client, url: str) -> None:
    pinged = answer(client.get(url))
    run = Run.objects.get()
    assert (pinged["series"], pinged["run"], pinged["state"]) == (NAME, str(run.pk), "passed")
    assert (run.state, run.seconds) == (State.PASSED, 0.0)
    assert not RawReport.objects.get().parsed().stages  # its duration is unknown, not 0


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_start_and_an_end_are_one_run_with_its_duration(client: Client, url: str, method: str) -> None:
    ping = getattr(client, method)
    started = answer(ping(f"{url}/start"))
    assert (started["state"], Run.objects.get().state) == ("running", State.RUNNING)
    ended = answer(ping(f"{url}/0"))
    assert (ended["run"], ended["state"], ended["duplicate"]) == (started["run"], "passed", False)
    report = RawReport.objects.get().parsed()
    assert [stage.name for stage in report.stages] == ["run"]
    assert 0 < report.seconds == report.stages[0].seconds < 600


@pytest.mark.parametrize(("signal", "reason"), [("fail", "reported as failed"), ("3", "exit status 3")])
def test_a_failure_has_the_last_line_of_the_output_as_its_reason(
    client: Client, url: str, signal: str, reason: str
) -> None:
    log = b"copying\ntar: disk full\n\xff\x00"[:23]
    pinged = answer(client.post(f"{url}/{signal}", log, "text/plain"))
    assert pinged["state"] == "failed"
    assert Run.objects.get().reason == f"run failed: {reason}: tar: disk full"
    report = RawReport.objects.get().parsed()
    assert [line.text for line in report.log] == ["copying", "tar: disk full"]
    assert report.failure is not None
    assert report.failure.exit_status == (None if signal == "fail" else 3)
    assert report.failure.stderr_tail == "copying\ntar: disk full\n"


def test_output_may_be_json(client: Client, url: str) -> None:
    pinged = answer(client.post(f"{url}/3", {"output": "copying\ntar: disk full"}, "application/json"))
    assert pinged["state"] == "failed"
    assert Run.objects.get().reason == "run failed: exit status 3: tar: disk full"
    assert answer(client.post(url, b"", "application/json"))["state"] == "passed"


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ("{", 400, "JSON"),
        ("[]", 422, ""),
        ('{"output": 1}', 422, "output"),
        ('{"text": "x"}', 422, "text"),
        ('{"output": "\\ud800"}', 400, "JSON"),
    ],
)
def test_output_that_is_no_such_json_is_refused(
    client: Client, url: str, body: str, status: int, named: str
) -> None:
    refused = client.post(f"{url}/3", body, "application/json")
    assert (refused.status_code, named in refused.json()["detail"]) == (status, True), refused.json()
    assert not Run.objects.exists()


def test_output_that_is_no_text_or_too_long_is_stored_as_far_as_it_can_be(client: Client, url: str) -> None:
    output = b"\xff\x00" + b"x" * 3_000_000 + b"\nthe end"
    answer(client.post(f"{url}/1", output, "application/x-www-form-urlencoded"))
    report = RawReport.objects.get().parsed()
    assert report.log[0].text.startswith("\ufffd\ufffdxxx")
    assert "characters cut" in report.log[0].text
    assert report.log[-1].text == "the end"
    assert len(RawReport.objects.get().body) < 256 * 1024


def test_a_ping_with_an_id_is_harmless_when_it_is_repeated(client: Client, url: str) -> None:
    starts = [answer(client.get(f"{url}/start?rid=job-1")) for _ in range(2)]
    ends = [answer(client.get(f"{url}?rid=job-1")) for _ in range(2)]
    late = answer(client.get(f"{url}/start?rid=job-1"))
    assert [each["duplicate"] for each in (*starts, *ends, late)] == [False, True, False, True, True]
    assert {each["run"] for each in (*starts, *ends, late)} == {str(Run.objects.get().pk)}
    assert late["state"] == "passed"


def test_another_end_of_the_same_run_is_a_conflict(client: Client, url: str) -> None:
    answer(client.get(f"{url}?rid=job-1"))
    response = client.get(f"{url}/fail?rid=job-1")
    assert (response.status_code, response.json()["code"]) == (409, "conflict")
    assert Run.objects.get().state == State.PASSED
    assert ConflictCount.objects.get().total == 1


def test_runs_at_the_same_time_are_told_apart_by_their_ids(client: Client, url: str) -> None:
    for rid in ("a", "b"):
        answer(client.get(f"{url}/start?rid={rid}"))
    answer(client.get(f"{url}/fail?rid=b"))
    answer(client.get(f"{url}/0?rid=a"))
    assert sorted(Run.objects.values_list("state", flat=True)) == ["failed", "passed"]


def test_an_end_before_its_start_counts_and_the_start_changes_nothing(client: Client, url: str) -> None:
    ended = answer(client.get(f"{url}?rid=job-1"))
    started = answer(client.get(f"{url}/start?rid=job-1"))
    assert (started["run"], started["state"], started["duplicate"]) == (ended["run"], "passed", True)


@pytest.mark.parametrize("suffix", ["", "/start", "/fail", "/7"])
def test_a_wrong_or_revoked_key_is_not_found(client: Client, url: str, suffix: str) -> None:
    PingKey.objects.all().revoke(who="ada", now=timezone.now())
    for address in (url, "/api/v1/ping/gcping_wrong"):
        response = client.get(address + suffix)
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "suffix", ["/stop", "/256", "/-1", "/00", "/٣", "/start?rid=a%20b", "?rid=" + "x" * 101]
)
def test_a_malformed_ping_names_its_field(client: Client, url: str, suffix: str) -> None:
    response = client.get(url + suffix)
    assert (response.status_code, response.json()["code"]) == (422, "invalid")
    assert response.json()["detail"].startswith(("signal: ", "rid: "))


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"output": "a", "output": "b"}', "expected JSON: the key 'output' is repeated"),
        (b'{"output": ', "expected JSON: Expecting value: line 1 column 12 (char 11)"),
        (b'{"output": NaN}', "expected JSON: NaN is not JSON"),
        (b"[" * 100_000, "expected JSON, got too many levels of it"),
        (b"\xff", "expected JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
    ids=["a repeated key", "cut", "no number", "deep", "not UTF-8"],
)
def test_output_that_is_no_json_is_refused_and_no_run_ends(
    client: Client, url: str, body: bytes, detail: str
) -> None:
    response = client.post(f"{url}/fail", body, "application/json")
    assert (response.status_code, response.json()["code"]) == (400, "malformed")
    assert response.json()["detail"] == detail
    assert not Run.objects.exists()


def test_a_token_in_a_header_pings_too(series: Series) -> None:
    program = sender()
    path = f"/api/v1/series/{NAME}/ping"
    started = answer(program.post(f"{path}/start"))
    ended = answer(program.post(f"{path}/1", b"no space left", "text/plain"))
    assert (ended["run"], ended["state"]) == (started["run"], "failed")
    assert answer(program.post(path))["state"] == "passed"


@pytest.mark.parametrize("signal", ["256", "-1", "stop", "03", "3%0A"])
def test_what_is_no_signal_is_refused_in_words(series: Series, signal: str) -> None:
    refused = sender().post(f"/api/v1/series/{NAME}/ping/{signal}")
    assert refused.status_code == 422
    assert "expected start, fail, or an exit status from 0 to 255" in refused.json()["detail"]


def test_a_token_pings_only_series_of_its_reporter(circle: Series, series: Series) -> None:
    program = sender()
    codes = {}
    for name in (circle.name, "unknown", "nul%00"):
        response = program.post(f"/api/v1/series/{name}/ping")
        codes[name] = response.status_code, response.json()["code"]
    assert codes == {
        circle.name: (409, "not_reported"), "unknown": (404, "not_found"), "nul%00": (404, "not_found")
    }  # fmt: skip
    assert Client().post(f"/api/v1/series/{NAME}/ping").status_code == 401


def test_a_token_without_the_scope_report_pings_nothing(series: Series) -> None:
    assert sender("read").post(f"/api/v1/series/{NAME}/ping").status_code == 403
    assert not Run.objects.exists()


def test_keys_are_created_listed_and_revoked_over_the_api(series: Series, client: Client) -> None:
    program = sender("read", "manage")
    path = f"/api/v1/series/{NAME}/ping-keys"
    created = program.post(path, {"name": "cron"}, "application/json")
    assert created.status_code == 201
    key = created.json()
    assert key["url"] == f"http://testserver/api/v1/ping/{key['key']}"
    answer(client.get(f"/api/v1/ping/{key['key']}"))
    (listed,) = answer(program.get(path))["ping_keys"]
    assert (listed["id"], listed["name"], listed["revoked_at"]) == (key["id"], "cron", None)
    assert listed["used_at"] is not None
    assert key["key"] not in str(listed)
    revoked = answer(program.post(f"{path}/{key['id']}/revoke"))
    assert revoked["revoked_by"] == "program"
    assert client.get(f"/api/v1/ping/{key['key']}").status_code == 404


def test_keys_need_the_permission_to_manage_reporters(series: Series) -> None:
    program = sender("report")
    path = f"/api/v1/series/{NAME}/ping-keys"
    assert program.post(path, {"name": "cron"}, "application/json").status_code == 403
    assert program.post(f"{path}/1/revoke").status_code == 403
    assert not PingKey.objects.exists()


def test_the_command_creates_lists_and_revokes_keys(
    series: Series, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("ping_key", "create", NAME, "--name", "cron")
    key = capsys.readouterr().out.split()[0]
    call_command("ping_key", "list")
    number = capsys.readouterr().out.split()[0]
    assert Client().get(f"/api/v1/ping/{key}").status_code == 200
    call_command("ping_key", "revoke", number)
    assert Client().get(f"/api/v1/ping/{key}").status_code == 404
    with pytest.raises(CommandError, match="there is no series 'nothing'"):
        call_command("ping_key", "create", "nothing")


def crontab_lines() -> list[str]:
    """Return the commands of docs/reports.md with which a cron job reports its runs."""
    text = (DOCS / "reports.md").read_text(encoding="utf-8")
    return re.findall(r"^0 3 \* \* \* (.*curl .*)$", text, re.MULTILINE)


def as_cron_reads(line: str) -> str:
    """Return the command of a line of a crontab: an escaped % is a %, any other begins its input."""
    assert not re.search(r"(?<!\\)%", line), f"cron cuts {line!r} at the %"
    return line.replace(r"\%", "%")


@dataclass(frozen=True)
class CronJob:
    """A program of a crontab, and where its lines ping."""

    program: Path
    url: str
    key: str

    def run(self, line: str) -> str:
        """Run a line of docs/reports.md as cron does; return what it prints."""
        command = as_cron_reads(line).replace("/usr/local/bin/backup", str(self.program))
        command = command.replace("KEY", self.key).replace("https://gridcast.example.org", self.url)
        done = subprocess.run(
            ["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


@pytest.fixture
def cron_job(live_server: LiveServer, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CronJob:
    now = timezone.now()
    expanded(reported_series("* * * * *"), now - 3 * MINUTE, now)
    call_command("ping_key", "create", NAME)
    return CronJob(tmp_path / "backup", live_server.url, capsys.readouterr().out.split()[0])


def logs() -> list[list[str]]:
    reports = RawReport.objects.order_by("received_at")
    return [[line.text for line in report.parsed().log] for report in reports]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("status", "state"), [(0, "passed"), (3, "failed")])
def test_a_cron_job_reports_its_first_runs_with_a_line_of_curl(
    cron_job: CronJob, status: int, state: str
) -> None:
    """The lines of docs/reports.md, in a real shell with a real curl: the status, then also the output."""
    cron_job.program.write_text(f"#!/bin/sh\necho copying\nexit {status}\n")
    cron_job.program.chmod(0o755)
    printed = [cron_job.run(line) for line in crontab_lines()]
    assert printed == ["copying\n", ""]  # of the program, not of curl: or cron would send a mail
    first, second = Run.objects.filter(state=state)
    assert "schedule" in {first.trigger, second.trigger}
    assert logs() == [[], ["copying"]]


OUTPUT = ["-n 50% done \\n \\t %s %d", "  $HOME `id` \"quoted\" 'text' *", "last \\c line"]


@pytest.mark.django_db(transaction=True)
def test_a_cron_job_sends_any_output_as_it_is_and_its_repetitions_stay_apart(cron_job: CronJob) -> None:
    output = cron_job.program.parent / "output"
    cron_job.program.write_text(f"#!/bin/sh\ncat {output}\nexit 1\n")
    cron_job.program.chmod(0o755)
    line = crontab_lines()[1]
    for text in ("\n".join(OUTPUT) + "\n", ""):  # then no output at all
        output.write_text(text)
        cron_job.run(line)
    assert logs() == [OUTPUT, [""]]
    assert Run.objects.filter(state="failed").count() == 2


def test_the_page_of_ping_keys_has_the_lines_of_the_documentation() -> None:
    page = html.unescape((ROOT / "templates/pages/ping_keys_series.html").read_text(encoding="utf-8"))
    for line in crontab_lines():
        shown = line.replace("/usr/local/bin/backup", "PROGRAM")
        assert shown.replace("https://gridcast.example.org/api/v1/ping/KEY", "{{ url }}") in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("signal", ["start", "0"])
def test_a_ping_of_a_series_that_is_deleted_meanwhile_is_refused(signal: str) -> None:
    _, text = PingKey.objects.issue(reported_series(), name="cron", who="ada", now=timezone.now())

    def ping() -> int:
        try:
            return Client(raise_request_exception=False).get(f"/api/v1/ping/{text}/{signal}").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            Series.objects.all().delete()
            status = thread.submit(ping)
            assert eventually(blocks_another_session)
        assert status.result() in (404, 422)
