"""Each end of a run that is reported from outside is a run of its own, however many end together."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client, override_settings
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.analysis.alerts.evaluate import evaluate
from monitor.models import Alert, AlertRule, PingKey, ReportedStart, Run, Series
from monitor.models.run import REPORTED, State
from monitor.runs.ingest import service
from monitor.runs.ingest.http_senders import SentReports, ingest_requests
from monitor.runs.ingest.pings import start_run
from monitor.runs.ingest.receipt import ReportReceipt
from monitor.runs.ingest.service import ingest_all
from monitor.runs.ledger import transitions
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.outside import NAME, expanded, reported_series, sender
from tests.waiting import eventually

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SCHEDULES = pytest.mark.parametrize("schedule", ["", "0 * * * *"], ids=["no schedule", "hourly"])
THREADS = 12
EXAMPLES = max(4, settings().max_examples // 5)  # each stores up to 500 reports


@pytest.fixture(autouse=True)
def host(tmp_path: Path) -> Iterator[None]:
    """A web host without other senders; no request is told to come again."""
    with override_settings(
        VAR_DIR=tmp_path, GRIDCAST_RECEIVE_AT_ONCE=THREADS, GRIDCAST_RECEIVE_WAITING=1_000
    ):
        yield


def series_with(schedule: str) -> Series:
    """Return the series; with a schedule, it has the slots of the last day."""
    series = reported_series(schedule)
    now = timezone.now()
    return expanded(series, now - DAY, now) if schedule else series


def in_threads(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return the result of *work* of each of *items*, in threads with connections of their own."""
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(closing(work), items))


def closing(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return *work*, changed so that it closes the connection of its thread."""

    def closed(item: Any) -> Any:
        try:
            return work(item)
        finally:
            connection.close()

    return closed


def body(**fields: Any) -> bytes:
    return json.dumps({"series": NAME, "outcome": "passed", **fields}).encode()


def send(*bodies: bytes) -> list[ReportReceipt]:
    return ingest_all(bodies, senders=["home"] * len(bodies), from_outside=True)


def ended() -> list[str]:
    return sorted(Run.objects.filter(state__in=REPORTED).values_list("state", flat=True))


@SCHEDULES
@pytest.mark.django_db(transaction=True)
def test_sixty_parallel_pings_with_ids_are_sixty_runs(schedule: str) -> None:
    _, key = PingKey.objects.issue(series_with(schedule), name="cron", who="ada", now=timezone.now())
    signals = ["fail" if number % 3 else "0" for number in range(60)]

    def ping(number: int) -> Any:
        return Client().get(f"/api/v1/ping/{key}/{signals[number]}?rid=a{number}")

    for is_again in (False, True):
        answers = in_threads(ping, range(60))
        assert [answer.status_code for answer in answers] == [200] * 60
        assert {answer.json()["duplicate"] for answer in answers} == {is_again}
        states = {answer.json()["run"]: answer.json()["state"] for answer in answers}
        assert list(states.values()) == ["failed" if signal == "fail" else "passed" for signal in signals]
        assert ended() == ["failed"] * 40 + ["passed"] * 20


@pytest.mark.django_db(transaction=True)
def test_sixty_parallel_failures_are_sixty_failed_runs_and_their_alert() -> None:
    series = series_with("0 * * * *")
    path = f"/api/v1/series/{NAME}/ping/fail"
    program = sender()
    statuses = in_threads(lambda number: program.post(f"{path}?rid=a{number}").status_code, range(60))
    assert statuses == [200] * 60
    assert ended() == ["failed"] * 60
    fields = {
        "condition": "failures_in_row",
        "threshold": 60,
        "everything": True,
        "notify": [{"kind": "log"}],
    }
    AlertRule.objects.create(name="sixty", **fields)
    evaluate(timezone.now())
    assert Alert.objects.get().series == series


@SCHEDULES
def test_two_ids_of_the_same_seconds_in_one_request_are_two_runs(db: None, schedule: str) -> None:
    series_with(schedule)
    reports = [
        {"series": NAME, "seconds": 5, "outcome": outcome, "rid": rid}
        for outcome, rid in (("passed", "job-1"), ("failed", "job-2"))
    ]
    program = sender()
    for is_again in (False, True):
        answer = program.post("/api/v1/reports", reports, "application/json")
        receipts = answer.json()["receipts"]
        assert [(each["accepted"], each["duplicate"], each["conflict"]) for each in receipts] == [
            (True, is_again, False)
        ] * 2
        assert ended() == ["failed", "passed"]


@SCHEDULES
@pytest.mark.django_db(transaction=True)
def test_starts_at_the_same_moment_are_as_many_runs(schedule: str) -> None:
    series, now = series_with(schedule), timezone.now()
    started = in_threads(lambda number: start_run(series, f"job-{number}", now), range(24))
    assert len({run.slot for run in started}) == len({run.run for run in started}) == 24
    assert Run.objects.filter(state=State.RUNNING).count() == 24
    receipts = send(*(body(rid=f"job-{number}") for number in range(24)))
    assert [receipt.stored for receipt in receipts] == [(run.run, run.slot) for run in started]
    assert ended() == ["passed"] * 24


def test_an_end_without_an_id_at_the_same_time_as_another_one_is_a_run_too(db: None) -> None:
    """Reports that say when their runs were are the same if they are equal; others are as many runs."""
    series_with("")
    dated = {"started_at": "2026-03-01T03:00:00Z", "seconds": 5}
    bodies = [body(**dated), body(**dated, outcome="failed"), body(**dated), body(**dated, outcome="broken")]
    receipts = send(*bodies)
    assert [receipt.duplicate for receipt in receipts] == [False, False, True, False]
    assert [receipt.stored for receipt in send(*bodies)] == [receipt.stored for receipt in receipts]
    assert ended() == ["broken", "failed", "passed"]
    undated = send(body(seconds=5), body(seconds=5), body(seconds=5, outcome="failed"))
    assert [(each.accepted, each.duplicate, each.conflict) for each in undated] == [(True, False, False)] * 3
    assert ended() == ["broken", "failed", "failed", "passed", "passed", "passed"]


def test_runs_that_started_in_the_same_second_have_the_next_microseconds(db: None) -> None:
    series_with("")
    start = datetime(2026, 3, 1, 3, microsecond=900, tzinfo=UTC)
    bodies = [body(rid=f"{number}", started_at=wire.rfc3339(start), seconds=number) for number in range(300)]
    receipts = [receipt for first in range(0, 300, 100) for receipt in send(*bodies[first : first + 100])]
    slots = [receipt.stored[1] for receipt in receipts if receipt.stored]
    assert slots == [start + timedelta(microseconds=number) for number in range(300)]
    assert set(Run.objects.values_list("started_at", flat=True)) == {start}  # as its sender says


def test_an_id_that_has_another_end_already_is_a_conflict(db: None) -> None:
    series_with("")
    receipts = send(body(rid="a", seconds=5), body(rid="a", seconds=6))
    assert [(each.accepted, each.conflict) for each in receipts] == [(True, False), (True, True)]
    (again,) = send(body(rid="a", seconds=7))
    assert (again.accepted, again.conflict) == (True, True)
    assert Run.objects.count() == 1


def test_a_report_that_names_its_slot_gets_it_and_others_of_its_request_get_another(db: None) -> None:
    now = timezone.now()
    slot = now.replace(minute=0, second=0, microsecond=0) - HOUR
    series_with("0 * * * *")
    start = wire.rfc3339(slot + MINUTE)
    without, named = body(rid="a", started_at=start, seconds=5), body(slot=wire.rfc3339(slot), seconds=5)
    receipts = send(without, named)
    assert [receipt.conflict for receipt in receipts] == [False, False]
    assert [receipt.stored[1] for receipt in receipts if receipt.stored] == [slot + MINUTE, slot]


def test_a_slot_of_another_id_is_refused_not_accepted_and_kept_beside(db: None) -> None:
    series_with("")
    slot = "2026-03-01T03:00:00.000000Z"
    receipts = send(*(body(rid=rid, slot=slot, started_at=slot, seconds=5) for rid in ("a", "b", "a")))
    assert [(each.accepted, each.duplicate) for each in receipts] == [
        (True, False), (False, False), (True, True)
    ]  # fmt: skip
    assert receipts[1].error.startswith(f"slot: {slot} is that of the id 'a': leave it out")
    (own,) = send(body(rid="b", started_at=slot, seconds=5))
    assert (own.accepted, own.conflict, Run.objects.count()) == (True, False, 2)


def test_another_report_of_a_slot_without_an_id_is_a_conflict(db: None) -> None:
    series_with("")
    slot = "2026-03-01T03:00:00.000000Z"
    first, other = (body(slot=slot, started_at=slot, seconds=seconds) for seconds in (5, 6))
    receipts = send(first, other, body(rid="b", slot=slot, started_at=slot, seconds=7))
    assert [(each.accepted, each.conflict) for each in receipts] == [
        (True, False),
        (True, True),
        (True, True),
    ]


def test_slots_that_reports_name_are_taken_also_where_other_runs_are_counted_on(db: None) -> None:
    series_with("")
    start = datetime(2026, 3, 1, 3, microsecond=999, tzinfo=UTC)
    slots = [start + timedelta(microseconds=number) for number in range(4)]
    send(*(body(slot=wire.rfc3339(slot), seconds=5) for slot in slots[:2]))
    named = body(slot=wire.rfc3339(slots[2]), seconds=5)
    receipts = send(body(rid="a", started_at=wire.rfc3339(start), seconds=5), named)
    assert [receipt.stored[1] for receipt in receipts if receipt.stored] == [slots[3], slots[2]]


def test_without_a_schedule_an_old_slot_gets_no_run(db: None) -> None:
    """The last slot before the schedule was removed stays missed, however many months ago that was."""
    series = series_with("0 * * * *")
    Series.objects.filter(pk=series.pk).update(schedule="")
    old = Run.objects.filter(trigger="schedule")
    transitions.move(Run.objects.all(), list(old.values_list("pk", flat=True)), State.MISSED, cause="x")
    send(body(rid="a"))
    started = start_run(series, "b", timezone.now())
    assert set(old.values_list("state", flat=True)) == {State.MISSED}
    assert started.slot not in set(old.values_list("slot", flat=True))


def test_a_refused_report_takes_neither_slot_nor_id(db: None) -> None:
    series_with("0 * * * *")
    refused, stored = send(body(rid="a", metrics=[{"name": "m"}]), body(rid="b"))
    assert (refused.accepted, stored.accepted) == (False, True)
    assert Run.objects.get(state=State.PASSED).trigger == "schedule"
    assert list(ReportedStart.objects.values_list("rid", flat=True)) == ["b"]


def test_a_lost_run_that_an_id_has_started_still_ends_in_its_slot(db: None) -> None:
    """Another id does not take the slot of a run whose end may still come."""
    series = series_with("0 * * * *")
    now = timezone.now()
    started = start_run(series, "a", now)
    Run.objects.filter(pk=started.run).update(state=State.LOST)
    other = start_run(series, "b", now)
    ends = send(body(rid="c"), body(rid="a"), body(rid="b"))
    assert not any(receipt.conflict for receipt in ends)
    assert [receipt.stored for receipt in ends[1:]] == [(run.run, run.slot) for run in (started, other)]
    assert len({receipt.stored for receipt in ends}) == 3


@pytest.mark.django_db(transaction=True)
def test_a_slot_that_a_whole_report_takes_meanwhile_is_not_given_to_another_run() -> None:
    """Whole reports name their slots and need no lock: the other report waits for the row, and moves on."""
    series_with("0 * * * *")
    slot = last_hour()
    receipts = both_stored(slot, lambda short: send(short)[0])
    assert [receipt.conflict for receipt in receipts] == [False, False]
    assert [receipt.stored[1] for receipt in receipts if receipt.stored] == [slot, slot + MINUTE]


@pytest.mark.django_db(transaction=True)
def test_a_sender_whose_slots_are_taken_each_time_is_asked_to_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twenty whole reports in a row would have to take the slots; here, one try is the last."""
    series_with("0 * * * *")
    monkeypatch.setattr(service, "MOST_TRIES", 1)
    program, slot = sender(), last_hour()
    short = body(rid="a", started_at=wire.rfc3339(slot + MINUTE), seconds=5)

    def post(short: bytes) -> Any:
        return program.post("/api/v1/reports", short, content_type="application/json")

    _, answer = both_stored(slot, post, short)
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (503, "busy", "1")
    assert post(short).json()["receipts"][0]["accepted"]
    assert Run.objects.filter(state=State.PASSED).count() == 2


def last_hour() -> datetime:
    return timezone.now().replace(minute=0, second=0, microsecond=0) - HOUR


def both_stored(slot: datetime, send_short: Callable[[bytes], Any], short: bytes = b"") -> list[Any]:
    """Store a whole report in *slot* while *send_short* sends a *short* one; return both results."""
    short = short or body(rid="a", started_at=wire.rfc3339(slot + MINUTE), seconds=5)
    whole = wire.to_json(replace(circle_report(slot, series=NAME), reporter="home"))
    is_stored, may_commit = threading.Event(), threading.Event()

    def store_whole(_: int) -> ReportReceipt:
        with transaction.atomic():
            (receipt,) = send(whole)
            is_stored.set()
            assert may_commit.wait(60)
        return receipt

    def store_short(_: int) -> Any:
        assert is_stored.wait(60)
        return send_short(short)

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(closing(work), 0) for work in (store_whole, store_short)]
        assert eventually(is_waiting_for_a_row)
        may_commit.set()
        return [each.result(60) for each in both]


def is_waiting_for_a_row() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
        return bool(cursor.fetchone()[0])


class Ends:
    """The ends of *count* runs, and which of them each request of each group commit has, drawn by *seed*.

    Attributes:
        bodies: one of each run.
        commits: for each group commit the positions of the bodies of its requests; some occur twice.
    """

    def __init__(self, count: int, seed: int) -> None:
        chance = random.Random(seed)
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        dates = [{}, {}, {"started_at": "2026-03-01T03:00:00Z"}, {"started_at": wire.rfc3339(hour - HOUR)}]
        self.outcomes = chance.choices(["passed", "failed", "broken", "timed_out"], k=count)
        self.bodies = [
            body(
                rid=f"job-{number}",
                outcome=outcome,
                seconds=chance.choice([0, 5, 90]),
                **chance.choice(dates),
            )
            for number, outcome in enumerate(self.outcomes)
        ]
        commits, requests = chance.randint(1, 6), chance.randint(1, 5)
        self.commits: list[list[list[int]]] = [[[] for _ in range(requests)] for _ in range(commits)]
        sent = [*range(count), *chance.sample(range(count), count // 4)]
        chance.shuffle(sent)
        for number in sent:
            chance.choice(chance.choice(self.commits)).append(number)

    def store(self) -> list[tuple[int, ReportReceipt]]:
        """Store each group commit in a thread with a connection of its own, as several processes do."""
        commits = [[numbers for numbers in requests if numbers] for requests in self.commits]
        receipts: list[tuple[int, ReportReceipt]] = []
        for requests, answers in zip(commits, in_threads(self._store, commits), strict=True):
            for numbers, answer in zip(requests, answers, strict=True):
                receipts += zip(numbers, answer, strict=True)
        return receipts

    def _store(self, requests: list[list[int]]) -> list[list[ReportReceipt] | Exception]:
        sent = [
            SentReports([self.bodies[number] for number in numbers], "home", None) for numbers in requests
        ]
        return ingest_requests(sent)


@SCHEDULES
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.one_of(st.integers(1, 8), st.integers(1, 200)), seed=st.integers(0, 2**32))
@pytest.mark.django_db(transaction=True)
def test_as_many_runs_as_ids_however_the_ends_are_split(schedule: str, count: int, seed: int) -> None:
    Run.objects.all().delete()
    ReportedStart.objects.all().delete()
    Series.objects.all().delete()
    series_with(schedule)
    ends = Ends(count, seed)
    first = ends.store()
    assert all(receipt.accepted and not receipt.conflict for _, receipt in first)
    assert sum(not receipt.duplicate for _, receipt in first) == count
    runs = {number: receipt.stored[0] for number, receipt in first if receipt.stored}
    assert len(set(runs.values())) == len(runs) == count
    states = dict(Run.objects.filter(pk__in=runs.values()).values_list("pk", "state"))
    assert [states[runs[number]] for number in range(count)] == ends.outcomes
    again = ends.store()
    assert all(
        receipt.duplicate and receipt.stored[0] == runs[number] for number, receipt in again if receipt.stored
    )
    assert Run.objects.filter(state__in=REPORTED).count() == count
