"""Reports in the spool: kept whole, once, within bounds, over kills, outages and a full disk."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import gridcast_client
from gridcast_client import (
    Client,
    InvalidInput,
    Request,
    Response,
    Spool,
    SpoolError,
    SpoolFull,
    Unreachable,
)
from tests.client.in_process import URL, Answers, document, pauses, problem
from tests.reporters.small_file_system import small_file_system

AWAY = Unreachable("away")


def report(number: int) -> dict[str, object]:
    return {"series": "backup", "slot": f"2026-03-01T12:00:{number:02}Z", "outcome": "passed"}


def sent_in(request: Request) -> list[dict[str, object]]:
    assert request.headers["Content-Encoding"] == "gzip"
    return [json.loads(line) for line in gzip.decompress(request.body or b"").splitlines()]


class Depot:
    """Accepts reports as gridcast does, and refuses those whose outcome is none."""

    def __init__(self) -> None:
        self.stored: list[dict[str, object]] = []
        self.requests: list[int] = []

    def __call__(self, request: Request, timeout_seconds: float) -> Response:
        receipts = []
        reports = sent_in(request)
        self.requests.append(len(reports))
        for each in reports:
            is_new = each not in self.stored
            accepted = each["outcome"] == "passed"
            self.stored += [each] if is_new and accepted else []
            receipts.append(
                {
                    "run": None,
                    "accepted": accepted,
                    "duplicate": not is_new,
                    "conflict": False,
                    "error": "" if accepted else "outcome: expected one of ...",
                }
            )
        return document(json.dumps({"receipts": receipts, "refused": []}))


def client_of(
    spool: Path | Spool, transport: Callable[[Request, float], Response], **options: object
) -> Client:
    return Client(URL, "secret", spool=spool, transport=transport, environ={}, tries=1, **options)  # type: ignore[arg-type]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def test_reports_wait_while_the_server_is_away_and_arrive_in_order(directory: Path) -> None:
    for number in range(3):
        delivery = client_of(directory, Answers(AWAY)).send([report(number)])
        assert (delivery.receipts, delivery.waiting) == ((), number + 1)
        assert isinstance(delivery.error, Unreachable)
    depot = Depot()
    delivery = client_of(directory, depot).deliver()
    assert (len(delivery.receipts), delivery.waiting, delivery.error) == (3, 0, None)
    assert depot.stored == [report(number) for number in range(3)]
    assert depot.requests == [3], "files are sent together"


def test_what_a_server_took_before_it_vanished_counts_once(directory: Path) -> None:
    depot = Depot()

    def vanishing(request: Request, timeout_seconds: float) -> Response:
        depot(request, timeout_seconds)
        raise AWAY

    assert client_of(directory, vanishing).send([report(1)]).waiting == 1
    assert [receipt.duplicate for receipt in client_of(directory, depot).deliver().receipts] == [True]
    assert depot.stored == [report(1)]


def test_a_report_without_a_slot_is_the_same_report_after_an_outage(directory: Path) -> None:
    answers = Answers(AWAY)
    client_of(directory, answers).send([{"series": "backup", "seconds": 3, "outcome": "passed"}])
    client_of(directory, answers).deliver()
    (first,), (second,) = (sent_in(request) for request in answers.requests)
    assert first == second
    assert first["rid"]
    assert str(first["ended_at"]).endswith("+00:00")


def test_refused_reports_are_set_aside_with_their_errors(directory: Path) -> None:
    refused = {**report(2), "outcome": "no"}
    delivery = client_of(directory, Depot()).send([report(1), refused])
    assert [receipt.accepted for receipt in delivery.receipts] == [True, False]
    assert delivery.waiting == 0
    (file,) = (directory / "refused").iterdir()
    (line,) = file.read_text().splitlines()
    assert json.loads(json.loads(line)["sent"]) == refused
    assert json.loads(line)["error"] == "outcome: expected one of ..."


def test_one_report_that_spoils_a_request_is_found_and_the_others_arrive(directory: Path) -> None:
    depot = Depot()

    def strict(request: Request, timeout_seconds: float) -> Response:
        if any(each["series"] == "huge" for each in sent_in(request)):
            return problem(413, "too_large")
        return depot(request, timeout_seconds)

    reports = [report(number) for number in range(9)]
    delivery = client_of(directory, strict).send(
        [*reports[:5], {**report(50), "series": "huge"}, *reports[5:]]
    )
    assert [receipt.accepted for receipt in delivery.receipts] == [*[True] * 5, False, *[True] * 4]
    assert depot.stored == reports


@pytest.mark.parametrize(
    "answer", [problem(401, "not_authenticated"), problem(403, "no_reporter"), document("{}")]
)
def test_a_refused_token_or_a_wrong_server_loses_nothing(directory: Path, answer: Response) -> None:
    delivery = client_of(directory, Answers(answer)).send([report(1)])
    assert delivery.waiting == 1
    assert delivery.error is not None
    assert not delivery.error.again
    depot = Depot()
    client_of(directory, depot).deliver()
    assert depot.stored == [report(1)]


def test_receipts_of_another_number_release_nothing(directory: Path) -> None:
    answer = document('{"receipts": [], "refused": []}')
    delivery = client_of(directory, Answers(answer)).send([report(1)])
    assert "expected 1 receipts, got 0" in str(delivery.error)
    assert delivery.waiting == 1


def test_large_sets_are_sent_in_several_requests(directory: Path) -> None:
    depot = Depot()
    reports = [{**report(1), "slot": f"slot {number}"} for number in range(1001)]
    delivery = client_of(directory, depot).send(iter(reports))
    assert (len(delivery.receipts), depot.requests) == (1001, [1000, 1])
    without_spool = Depot()
    client = Client(URL, transport=without_spool, environ={})
    assert [receipt.duplicate for receipt in client.send(reports).receipts] == [False] * 1001
    assert without_spool.requests == [1000, 1]


def test_a_full_spool_refuses_further_reports_and_keeps_the_others(directory: Path) -> None:
    spool = Spool(directory, most_bytes=500)
    client = client_of(spool, Answers(AWAY))
    accepted = [number for number in range(50) if _fits(client, number)]
    assert 3 < len(accepted) < 10
    with pytest.raises(SpoolFull, match=r"is full: \d+ of 500 bytes; deliver it"):
        client.send([report(50)])
    depot = Depot()
    client_of(spool, depot).deliver()
    assert depot.stored == [report(number) for number in accepted]
    assert _fits(client, 49)


def _fits(client: Client, number: int) -> bool:
    try:
        client.send([report(number)])
    except SpoolFull:
        return False
    return True


def test_a_full_disk_refuses_the_report_and_keeps_the_others(directory: Path) -> None:
    directory.mkdir()
    with small_file_system(directory, 1, mode="700"):
        client = client_of(directory, Answers(AWAY))
        client.send([report(1)])
        with pytest.raises(SpoolError, match=r"cannot write the spool .*: No space left on device"):
            client.send([{**report(2), "log": "x" * 2_000_000}])
        depot = Depot()
        assert client_of(directory, depot).deliver().waiting == 0
        assert depot.stored == [report(1)]


KILLED = """
import os, resource, signal, sys
from gridcast_client import Client

def die(request, timeout_seconds):
    os.kill(os.getpid(), signal.SIGKILL)

client = Client("https://grid.example.org", spool=sys.argv[1], transport=die, environ={})
if sys.argv[2] == "writing":  # the kernel kills the process at the 50th byte of a file
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
client.send([{"series": "backup", "slot": "2026-03-01T12:00:07Z", "outcome": "passed"}])
"""


@pytest.mark.parametrize(
    ("moment", "kill", "survives"),
    [("writing", signal.SIGXFSZ, False), ("sending", signal.SIGKILL, True)],
)
def test_a_kill_leaves_a_report_whole_or_not_at_all(
    directory: Path, moment: str, kill: signal.Signals, survives: bool
) -> None:
    client_of(directory, Answers(AWAY)).send([report(1)])
    path = str(Path(gridcast_client.__file__).parents[1])
    argv = [sys.executable, "-c", KILLED, str(directory), moment]
    killed = subprocess.run(argv, env={"PYTHONPATH": path}, cwd=directory, check=False)
    assert killed.returncode == -kill
    assert len([*directory.glob(".*.tmp")]) == (0 if survives else 1)
    depot = Depot()
    assert client_of(directory, depot).deliver().waiting == 0
    assert depot.stored == [report(1), *([report(7)] if survives else [])]


def test_what_a_killed_process_left_is_removed_when_it_is_old(directory: Path) -> None:
    Spool(directory)
    fresh, old = directory / ".fresh.tmp", directory / ".old.tmp"
    for file in (fresh, old):
        file.write_text("half")
    os.utime(old, (0, 0))
    client_of(directory, Depot()).deliver()
    assert fresh.exists()
    assert not old.exists()


def test_while_another_process_delivers_reports_wait(directory: Path) -> None:
    Spool(directory)
    holder = subprocess.Popen(
        ["flock", str(directory / "lock"), "sh", "-c", "echo locked; cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"locked\n"
    noted, waits = pauses()
    delivery = client_of(directory, Depot(), timeout_seconds=0.2, **waits).send([report(1)])
    assert delivery.waiting == 1
    assert "another process delivers it" in str(delivery.error)
    assert set(noted) == {0.05}
    holder.communicate()
    assert client_of(directory, Depot()).deliver().waiting == 0


def test_two_processes_deliver_each_report_once(directory: Path) -> None:
    first, second = Depot(), Depot()
    for number in range(20):
        client_of(directory, Answers(AWAY)).send([report(number)])

    def during(request: Request, timeout_seconds: float) -> Response:
        """While the first delivers, another process adds a report, and cannot deliver."""
        Spool(directory).add("reports", json.dumps(report(30)).encode() + b"\n")
        return first(request, timeout_seconds)

    assert client_of(directory, during).deliver().waiting == 1
    assert client_of(directory, second).deliver().waiting == 0
    assert (len(first.stored), second.stored) == (20, [report(30)])


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_spool_that_others_may_write_to_is_refused(directory: Path, mode: int) -> None:
    directory.mkdir()
    directory.chmod(mode)
    with pytest.raises(InvalidInput, match=r"the spool .* is open to other users \(drwx"):
        Spool(directory)


def test_a_spool_is_private(directory: Path) -> None:
    client_of(directory, Answers(AWAY)).send([report(1)])
    assert directory.stat().st_mode & 0o77 == 0
    (file,) = directory.glob("*.reports")
    assert file.stat().st_mode & 0o177 == 0


def test_a_spool_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpoolError, match=r"cannot make the spool .*file/spool: "):
        Spool(tmp_path / "file" / "spool")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", r"reports\[1\]: not JSON"),
        ("[]", r"reports\[1\]: expected a JSON object, got \[\]"),
        (b"\xff", r"reports\[1\]: not JSON"),
        ("", r"reports\[1\]: not JSON"),
        ("\ud800", r"reports\[1\]: not JSON"),
        ({"seconds": float("nan")}, r"reports\[1\]: cannot be written as JSON"),
        ({"seconds": object()}, r"reports\[1\]: cannot be written as JSON"),
    ],
)
def test_what_is_no_report_is_refused_by_its_number(directory: Path, given: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        client_of(directory, Depot()).send([report(1), given])  # type: ignore[list-item]


def test_times_of_python_become_times_of_json(directory: Path) -> None:
    depot = Depot()
    client_of(directory, depot).send([{**report(1), "started_at": datetime(2026, 3, 1, 12, tzinfo=UTC)}])
    assert depot.stored[0]["started_at"] == "2026-03-01T12:00:00+00:00"


def test_lines_and_whitespace_of_a_report_do_not_matter(directory: Path) -> None:
    depot = Depot()
    text = json.dumps(report(1), indent=2)
    client_of(directory, depot).send([text, f" {json.dumps(report(2))}\r\n".encode()])
    assert depot.stored == [report(1), report(2)]


def test_nothing_to_send_asks_nothing(directory: Path) -> None:
    answers = Answers(AWAY)
    assert client_of(directory, answers).send([]).waiting == 0
    assert Client(URL, transport=answers, environ={}).send([]).receipts == ()
    assert answers.requests == []


class Outcomes:
    """Accepts outcomes of jobs as gridcast does, but for those of the forecast 0; at most *most* at once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.jobs: list[str] = []
        self.requests: list[int] = []

    def __call__(self, request: Request, timeout_seconds: float) -> Response:
        told = json.loads(request.body or b"")
        assert (request.method, request.url) == ("POST", f"{URL}/api/v1/forecasts/outcomes")
        self.requests.append(len(told))
        if len(told) > self.most:
            problem = {"status": 413, "code": "too_large", "detail": "the body is too large"}
            return document(json.dumps(problem), 413)
        self.jobs += [each["job"] for each in told if each["forecast"]]
        receipts = [
            {
                "stored": {
                    **{name: each[name] for name in ("forecast", "job", "outcome")},
                    "seconds": 1.0,
                    "received_at": each["ended_at"],
                    "is_duplicate": False,
                }
                if each["forecast"]
                else None,
                "code": "" if each["forecast"] else "unknown_forecast",
                "error": "" if each["forecast"] else "there is no forecast 0",
            }
            for each in told
        ]
        return document(json.dumps({"outcomes": receipts, "refused": []}))


def waiting_outcomes(directory: Path, count: int) -> None:
    times = {"started_at": "2026-03-01T12:00:00Z", "ended_at": "2026-03-01T12:00:09Z"}
    for number in range(count):
        told = {
            "forecast": number % 50,
            "job": f"job-{number}",
            "outcome": "passed",
            **times,
            "seconds": None,
        }
        (directory / f"{number:05}.outcome").write_text(json.dumps(told))


def test_outcomes_are_delivered_a_thousand_at_once(directory: Path) -> None:
    Spool(directory)
    waiting_outcomes(directory, 1500)
    depot = Outcomes(1000)
    delivery = client_of(directory, depot).deliver()
    assert depot.requests == [1000, 500]
    assert depot.jobs == [f"job-{number}" for number in range(1500) if number % 50]
    assert (len(delivery.told), delivery.waiting, delivery.error) == (1470, 0, None)
    assert set(delivery.not_told) == {"unknown_forecast: there is no forecast 0"}
    assert len(list((directory / "refused").iterdir())) == 30


def test_outcomes_that_are_too_large_together_are_sent_in_halves(directory: Path) -> None:
    Spool(directory)
    waiting_outcomes(directory, 7)
    depot = Outcomes(2)
    delivery = client_of(directory, depot).deliver()
    assert (len(depot.jobs), len(delivery.not_told), delivery.waiting) == (6, 1, 0)
    waiting_outcomes(directory, 3)
    away = client_of(directory, Answers(AWAY)).deliver()
    assert (away.told, away.waiting) == ((), 3)


def test_damaged_files_are_set_aside_and_do_not_stop_the_others(directory: Path) -> None:
    Spool(directory)
    (directory / "0-empty.reports").touch()
    (directory / "0-zeros.outcome").write_bytes(bytes(100))
    (directory / "1-list.outcome").write_text("[1, 2]")
    client_of(directory, Answers(AWAY)).send([report(1)])
    depot = Depot()
    delivery = client_of(directory, depot).deliver()
    assert (depot.stored, delivery.waiting, len(delivery.not_told)) == ([report(1)], 0, 2)
    assert sorted(path.name for path in (directory / "refused").iterdir()) == [
        "0-zeros.outcome",
        "1-list.outcome",
    ]
