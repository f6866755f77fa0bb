"""Whatever of the web and of PostgreSQL is killed while reports come in: what had a receipt is there, once.

6 kills here; ``make kills`` has 200, in another order each time. GRIDCAST_KILLS says how many,
GRIDCAST_KILLS_SEED which order.
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

from monitor.compression import unpack
from monitor.embedded.clean import clean
from tests.monitor.kills.processes import KINDS, Web
from tests.monitor.kills.senders import Senders
from tests.waiting import eventually

KILLS = int(os.environ.get("GRIDCAST_KILLS", "6"))
SEED = int(os.environ.get("GRIDCAST_KILLS_SEED", "1"))
ROUND = 16  # kills of one supervisor, which waits longer each time that the same dies
SERIES = 4
VALUES, SITES = 8, 2  # of each report
MOST_BETWEEN = 30  # reports that have receipts from one kill to the next
BACK_WITHIN_SECONDS = 120.0


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    var = tmp_path / "var"
    yield Web(var, SERIES)
    clean(var)


@pytest.mark.chaos
@pytest.mark.alone
def test_what_had_a_receipt_is_there_once_whatever_was_killed(web: Web) -> None:
    chance = random.Random(SEED)
    began = time.monotonic()
    senders: Senders | None = None
    for first in range(0, KILLS, ROUND):
        with web.running():
            senders = senders or Senders(web.port, web.token, SERIES, SEED)
            with senders.sending():
                for what in drawn(chance, min(ROUND, KILLS - first)):
                    go_on(senders, chance.randint(1, MOST_BETWEEN), web)
                    web.kill(what, chance)
                    print(f"{time.monotonic() - began:6.1f} s  {what} was killed", flush=True)
                go_on(senders, MOST_BETWEEN, web)
            assert senders.wrong == [], web.said()
            check(web, senders.kept)
    assert senders is not None
    seconds = time.monotonic() - began
    print(
        f"seed {SEED}: {KILLS} kills in {seconds:.0f} s; {len(senders.kept)} reports, each there once;"
        f" answers {sorted(senders.answers.items())}; {senders.duplicates} receipts were lost on their way"
    )


def drawn(chance: random.Random, kills: int) -> list[str]:
    """What is killed, each kind as often as the others."""
    kinds = list(KINDS) * (kills // len(KINDS) + 1)
    chosen = kinds[:kills]
    chance.shuffle(chosen)
    return chosen


def go_on(senders: Senders, more: int, web: Web) -> None:
    """Until so many *more* reports have receipts."""
    wanted = len(senders.kept) + more
    enough = partial(lambda: len(senders.kept) >= wanted or senders.wrong)
    assert eventually(enough, within_seconds=BACK_WITHIN_SECONDS), f"they stopped\n{web.said()}"


def check(web: Web, kept: dict[uuid.UUID, bytes]) -> None:
    """That each report is in the depot, byte for byte, with its run, its values and its account: once."""
    with psycopg.connect(web.url) as depot:
        runs = depot.execute("SELECT id, state FROM monitor_run").fetchall()
        raw = depot.execute("SELECT run_id, packing, packed FROM monitor_rawreport").fetchall()
        (samples,) = depot.execute("SELECT count(*) FROM monitor_sample").fetchone() or (0,)
        (accounts,) = depot.execute("SELECT count(*) FROM monitor_usage").fetchone() or (0,)
    assert sorted(runs) == sorted((run, "passed") for run in kept)
    assert len(raw) == len(kept)
    assert {run: unpack(packing, bytes(packed)) for run, packing, packed in raw} == kept
    assert (samples, accounts) == (VALUES * len(kept), SITES * len(kept))
