"""Each acknowledged end of a run is stored once, whatever ends beside it, while web and broker are killed.

With 400 ends and 2 kills by default; ``make ends`` has 100,000 and 50, in another order each time
(GRIDCAST_ENDS, GRIDCAST_ENDS_KILLS, GRIDCAST_ENDS_SEED).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from monitor.operations.embedded.clean import clean
from tests.monitor.agents.feeder import series_of
from tests.monitor.ends.processes import KINDS, Installation
from tests.monitor.ends.senders import Acknowledged, Senders
from tests.waiting import eventually

ENDS = int(os.environ.get("GRIDCAST_ENDS", "400"))
KILLS = int(os.environ.get("GRIDCAST_ENDS_KILLS", "2"))
SEED = int(os.environ.get("GRIDCAST_ENDS_SEED", "1"))
IMPORTS_KILLED = 0.2  # share of the kills that also kill the import that runs
STALLED_SECONDS = 300.0
REPORTED = ("passed", "failed", "broken", "timed_out")


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    var = tmp_path / "var"
    yield Installation(var)
    clean(var)


@pytest.mark.chaos
def test_each_acknowledged_end_is_stored_once_whatever_was_killed(
    installation: Installation, tmp_path: Path
) -> None:
    chance, began = random.Random(SEED), time.monotonic()
    kinds = (list(KINDS) * (KILLS // len(KINDS) + 1))[:KILLS]
    with installation.running():
        assert eventually(installation.is_answering, within_seconds=STALLED_SECONDS), installation.log_tails()
        senders = Senders(installation, ENDS, SEED, tmp_path)
        done = senders.done
        with senders.sending() as is_over:
            for number, what in enumerate(kinds, start=1):
                await_ends(done, number * ENDS // (KILLS + 1), is_over, installation)
                installation.kill(what, chance)
                imports = chance.random() < IMPORTS_KILLED and senders.kill_the_import()
                print(
                    f"{time.monotonic() - began:6.1f} s  {done.total:6} ends; {what}"
                    f"{' and an import were' if imports else ' was'} killed",
                    flush=True,
                )
        assert done.errors == [], installation.log_tails()
        check(installation, done)
    print(
        f"seed {SEED}: {KILLS} kills, {time.monotonic() - began:.0f} s; {done.total} ends, each stored once:"
        f" {len(done.outside)} from outside, {done.agents.total()} of agents, {sum(done.imported.values())}"
        f" imported, {len(done.requested)} requested; answers {sorted(done.answers.items())}"
    )


def await_ends(
    done: Acknowledged, ends: int, is_over: Callable[[], bool], installation: Installation
) -> None:
    """Wait until *ends* ends are acknowledged, or all are."""
    while (before := done.total) < ends and not (done.errors or is_over()):
        more = partial(lambda before: done.total > before or done.errors or is_over(), before)
        assert eventually(more, within_seconds=STALLED_SECONDS), f"stalled\n{installation.log_tails()}"


def check(installation: Installation, done: Acknowledged) -> None:
    """Check that the depot has each acknowledged end once, with its outcome, and nothing else."""
    with psycopg.connect(installation.url, autocommit=True) as depot:
        check_outside(depot, done)
        for name, reports in done.agents.items():
            assert of_series(depot, [series_of(name)]) == (reports, reports, reports), name
        for name, rows in done.imported.items():
            assert of_series(depot, [name]) == (rows, rows, rows), name
        check_requested(depot, done, installation)
        conflicts = depot.execute("SELECT count(*) FROM monitor_conflictingreport").fetchone()
        assert conflicts == (0,)


def check_outside(depot: psycopg.Connection, done: Acknowledged) -> None:
    rows = depot.execute(
        "SELECT series.name, start.rid, run.state, run.id FROM monitor_reportedstart AS start"
        " JOIN monitor_series AS series ON series.id = start.series_id"
        " JOIN monitor_run AS run ON run.series_id = start.series_id AND run.slot = start.slot"
    ).fetchall()
    assert {(series, rid): state for series, rid, state, _ in rows} == done.outside
    runs = {(series, rid): run for series, rid, _, run in rows}
    assert len(set(runs.values())) == len(runs)
    assert {key: runs[key] for key in done.runs} == done.runs
    ends = len(done.outside)
    assert of_series(depot, sorted({series for series, _ in done.outside})) == (ends, ends, ends)


def check_requested(depot: psycopg.Connection, done: Acknowledged, installation: Installation) -> None:
    """Check that each requested run ends once; an answer that was lost may have requested a further one."""

    def states() -> dict[object, str]:
        requested = "SELECT id, state FROM monitor_run WHERE trigger LIKE 'asked for%'"
        return dict(depot.execute(requested).fetchall())

    assert eventually(lambda: set(states().values()) == {"passed"}, within_seconds=STALLED_SECONDS), (
        f"{states()}\n{installation.log_tails()}"
    )
    stored = states()
    assert stored.keys() >= done.requested
    ends = len(stored)
    assert of_series(depot, [f"requested-{number}" for number in range(6)]) == (ends, ends, ends)


def of_series(depot: psycopg.Connection, names: list[str]) -> tuple[int, int, int]:
    """Return the numbers of reported runs of the series *names*, of their slots, and of their reports."""
    row = depot.execute(
        "SELECT count(*), count(DISTINCT (run.series_id, run.slot)), count(raw.run_id)"
        " FROM monitor_run AS run"
        " JOIN monitor_series AS series ON series.id = run.series_id"
        " LEFT JOIN monitor_rawreport AS raw ON raw.run_id = run.id AND raw.slot = run.slot"
        " WHERE series.name = ANY (%s) AND run.state = ANY (%s)",
        [names, list(REPORTED)],
    ).fetchone()
    assert row is not None
    return row
