"""Every acknowledged report is stored exactly once while the web server and PostgreSQL are killed.

With 3 kills by default; ``make kills`` uses 200 in another order each time (GRIDCAST_KILLS,
GRIDCAST_KILLS_SEED).
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from monitor.core.compression import unpack
from monitor.operations.embedded.clean import clean
from tests.monitor.kills.processes import KINDS, Web
from tests.monitor.kills.senders import Senders
from tests.waiting import eventually

KILLS = int(os.environ.get("GRIDCAST_KILLS", "2"))
SEED = int(os.environ.get("GRIDCAST_KILLS_SEED", "1"))
ROUND = 16  # kills per supervisor, which waits longer before each restart of the same service
SERIES = 4
VALUES, SITES = 8, 2  # per report
MOST_BETWEEN = 30  # receipts between two kills
BACK_WITHIN_SECONDS = 240.0


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    var = tmp_path / "var"
    yield Web(var, SERIES)
    clean(var)


@pytest.mark.chaos
@pytest.mark.nightly
def test_each_acknowledged_report_is_stored_once_whatever_was_killed(web: Web) -> None:
    chance = random.Random(SEED)
    began = time.monotonic()
    senders: Senders | None = None
    for first in range(0, KILLS, ROUND):
        with web.running():
            senders = senders or Senders(web.port, web.token, SERIES, SEED)
            with senders.sending():
                for what in draw_kills(chance, min(ROUND, KILLS - first)):
                    await_receipts(senders, chance.randint(1, MOST_BETWEEN), web)
                    web.kill(what, chance)
                    print(f"{time.monotonic() - began:6.1f} s  {what} was killed", flush=True)
                await_receipts(senders, MOST_BETWEEN, web)
            assert senders.errors == [], web.log_tails()
            check(web, senders.acknowledged)
    assert senders is not None
    seconds = time.monotonic() - began
    print(
        f"seed {SEED}: {KILLS} kills, {seconds:.0f} s; {len(senders.acknowledged)} reports, each stored once;"
        f" answers {sorted(senders.answers.items())}; {senders.duplicates} receipts were lost on their way"
    )


def draw_kills(chance: random.Random, kills: int) -> list[str]:
    """Return the kinds of processes to kill, each equally often, in random order."""
    kinds = list(KINDS) * (kills // len(KINDS) + 1)
    chosen = kinds[:kills]
    chance.shuffle(chosen)
    return chosen


def await_receipts(senders: Senders, more: int, web: Web) -> None:
    """Wait until *more* further reports have receipts."""
    target = len(senders.acknowledged) + more
    enough = partial(lambda: len(senders.acknowledged) >= target or senders.errors)
    assert eventually(enough, within_seconds=BACK_WITHIN_SECONDS), f"no more receipts\n{web.log_tails()}"


def check(web: Web, reports: dict[uuid.UUID, bytes]) -> None:
    """Check that each report is stored once, byte for byte, with its run, its values and its usage."""
    with psycopg.connect(web.url) as depot:
        runs = depot.execute("SELECT id, state FROM monitor_run").fetchall()
        raw = depot.execute("SELECT run_id, packing, packed FROM monitor_rawreport").fetchall()
        (samples,) = depot.execute("SELECT count(*) FROM monitor_sample").fetchone() or (0,)
        (usages,) = depot.execute("SELECT count(*) FROM monitor_usage").fetchone() or (0,)
    assert sorted(runs) == sorted((run, "passed") for run in reports)
    assert len(raw) == len(reports)
    assert {run: unpack(packing, bytes(packed)) for run, packing, packed in raw} == reports
    assert (samples, usages) == (VALUES * len(reports), SITES * len(reports))
