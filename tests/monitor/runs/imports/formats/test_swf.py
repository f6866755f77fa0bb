"""Logs of batch systems: wait and runtime of every job, each with the time when it was known."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime, timedelta

import pytest

from monitor.runs.imports.formats.base import InvalidOption, Unreadable
from tests.monitor.runs.imports.formats.reading import (
    lines_of,
    metrics,
    needs_shared_data,
    read,
    read_shared,
    refused,
    runs,
    skipped,
)

HEADER = "; UnixStartTime: 1000000000\n"
START = datetime.fromtimestamp(1_000_000_000, UTC)


def job(
    number: int, *, submit: int = 60, wait: int = 5, run: int = 100, status: int = 1, queue: int = 1
) -> str:
    return f"{number} {submit} {wait} {run} 8 -1 -1 16 3600 -1 {status} 1 1 -1 {queue} -1 -1 -1\n"


def test_a_wait_is_known_at_the_start_of_a_job_and_its_runtime_at_the_end() -> None:
    waited, ran = runs(read("swf", HEADER + job(7)))
    submitted = START + timedelta(seconds=60, microseconds=7)
    assert (waited.series, waited.slot, waited.seconds) == ("wait", submitted, 5.0)
    assert (ran.series, ran.slot, ran.seconds) == ("run", submitted + timedelta(seconds=5), 100.0)
    assert [(stage.name, stage.category, stage.seconds) for stage in (*waited.stages, *ran.stages)] == [
        ("queue_wait", "queue", 5.0),
        ("compute", "compute", 100.0),
    ]
    assert metrics(ran) == {"job.processors": (16.0, "count"), "job.requested.seconds": (3600.0, "seconds")}


def test_jobs_of_the_same_second_have_distinct_slots() -> None:
    imported = runs(read("swf", HEADER + job(1_000_001) + job(1_000_002)))
    slots = [run.slot for run in imported if run.series == "wait"]
    assert len(set(slots)) == 2
    assert {slot.replace(microsecond=0) for slot in slots} == {START + timedelta(seconds=60)}


@pytest.mark.parametrize(
    ("status", "run", "outcomes"),
    [
        (1, 100, ["passed", "passed"]),
        (0, 100, ["passed", "failed"]),
        (-1, 100, ["passed", "passed"]),
        (5, 100, ["passed", "no_data"]),
        (5, 0, ["no_data"]),
        (5, -1, ["no_data"]),
        (1, -1, ["passed"]),
        (3, 100, []),
    ],
)
def test_the_status_of_a_job_gives_the_outcomes(status: int, run: int, outcomes: list[str]) -> None:
    assert [
        imported.outcome for imported in runs(read("swf", HEADER + job(1, status=status, run=run)))
    ] == outcomes


def test_a_job_with_an_unknown_wait_is_skipped() -> None:
    assert skipped(read("swf", HEADER + job(1, wait=-1))) == ["its wait is unknown, and so is its start"]


def test_an_option_gives_each_queue_its_own_series() -> None:
    imported = runs(read("swf", HEADER + job(1) + job(2, queue=3), each_queue="yes"))
    assert [run.series for run in imported] == ["wait-q1", "run-q1", "wait-q3", "run-q3"]


def test_without_a_header_an_option_gives_the_start_of_the_log() -> None:
    with pytest.raises(Unreadable, match="line 1: a job, but no header"):
        read("swf", job(1))
    assert runs(read("swf", job(1), unix_start="1000000000"))[0].slot.year == 2001
    with pytest.raises(InvalidOption, match="--unix-start: expected a finite number"):
        read("swf", job(1), unix_start="soon")


def test_malformed_lines_are_reported_and_jobs_read() -> None:
    items = read("swf", HEADER + "1 2 3\n" + job(2).replace(" 5 ", " five ") + job(3, status=9) + job(4))
    assert refused(items) == [
        "line 2: fields: expected 18, got '3: 1 2 3'",
        "line 3: wait time: expected a number of at most 3.2e+09, got 'five'",
        "line 4: status: expected -1 to 5, got '9'",
    ]
    assert len(runs(items)) == 2


@needs_shared_data
@pytest.mark.parametrize("log", ["CTC-SP2-1996-3.1-cln", "HPC2N-2002-2.2-cln"])
def test_a_log_of_the_archive_is_read_without_changes(log: str) -> None:
    name = f"swf-pwa/{log}.swf.gz"
    jobs = [line.split() for line in lines_of(name, lambda line: not line.startswith(";"), most=2000)]
    items = read_shared("swf", name, most=4000)
    imported = runs(items)
    assert not refused(items)
    waits = [run.seconds for run in imported if run.series == "wait"]
    ran = [run for run in imported if run.series == "run"]
    assert waits == [float(fields[2]) for fields in jobs]
    assert statistics.median(run.seconds for run in ran) == statistics.median(
        float(fields[3]) for fields in jobs
    )
    assert sum(run.outcome == "failed" for run in ran) == sum(fields[10] == "0" for fields in jobs)
    assert len({(run.series, run.slot) for run in imported}) == 4000
