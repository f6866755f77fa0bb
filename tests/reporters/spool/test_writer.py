"""The writer of a chain: a sequence number is never used for two records."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from reporters.spool import files, writer
from reporters.spool.notes import StartNote
from reporters.spool.owner import Process
from reporters.spool.spool import Spool
from reporters.spool.writer import ChainEnded, ChainWriter
from tests.reporters.spool.delivery import NOON, REPORTER, Depot, report


class Interrupted(Exception):
    """As the handler of a signal raises it: Celery ends a task so at its soft time limit."""


@contextmanager
def interrupted_at(number: int) -> Iterator[None]:
    """Raise Interrupted in this thread before line *number* of the code that writes a record."""
    sources = {writer.__file__, files.__file__}
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in sources:
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and not line.startswith("with "):  # there it would leave a lock locked
            count += 1
            if count == number:
                raise Interrupted
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def test_an_exception_at_any_line_of_an_append_loses_no_other_record(tmp_path: Path) -> None:
    spool = Spool(tmp_path, REPORTER, is_durable=False)
    confirmed = []
    interruptions = 0
    for number in range(1, 100):
        spool.append(report(2 * number))
        confirmed.append(report(2 * number))
        try:
            with interrupted_at(number):
                spool.append(report(2 * number + 1))
            confirmed.append(report(2 * number + 1))
        except Interrupted:
            interruptions += 1
    assert 20 < interruptions < 99
    depot = Depot()
    depot.deliver(spool)
    assert set(confirmed) - set(depot.bodies()) == set()
    assert depot.dropped() == []
    depot.check_chains()


def started(directory: Path, *, segment_bytes: int = 10**6) -> ChainWriter:
    return ChainWriter(
        directory,
        StartNote(REPORTER, NOON, None, "").to_body(),
        owner=Process.current(),
        now=lambda: NOON,
        segment_bytes=segment_bytes,
        is_durable=True,
    )


def test_a_chain_that_was_retired_takes_no_more_records(tmp_path: Path) -> None:
    chain = started(tmp_path)
    chain.append("report", report(1))
    chain.directory.rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(ChainEnded):
            chain.append("report", report(2))


def test_a_chain_whose_next_segment_was_left_by_an_error_ends(tmp_path: Path) -> None:
    chain = started(tmp_path, segment_bytes=400)
    (chain.directory / f"{2:020d}.segment").write_bytes(b"gridcast")
    chain.append("report", report(1, padding=100))
    with pytest.raises(ChainEnded):
        chain.append("report", report(2, padding=100))


def test_threads_that_append_across_segments_get_each_record_to_disk(tmp_path: Path) -> None:
    chain = started(tmp_path, segment_bytes=1000)
    with ThreadPoolExecutor(8) as pool:
        records = list(pool.map(lambda number: chain.append("report", report(number)), range(100)))
    assert sorted(record.sequence for record in records) == list(range(1, 101))
    assert len(list(chain.directory.glob("*.segment"))) > 20
    descriptors = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.exists()]
    assert sum(path.is_relative_to(chain.directory) for path in descriptors) == 1  # those before are closed
    chain.close()
