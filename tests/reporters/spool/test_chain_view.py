"""A view of a chain that other processes deliver and write at the same time."""

from __future__ import annotations

from pathlib import Path

from reporters.spool.chain_view import ChainView
from reporters.spool.spool import Spool
from tests.reporters.spool.delivery import REPORTER, Depot, report


def spooled(directory: Path, count: int) -> tuple[Spool, ChainView]:
    spool = Spool(directory, REPORTER, segment_bytes=1000, is_durable=False)
    for number in range(count):
        spool.append(report(number))
    (head,) = spool.heads()
    return spool, ChainView(directory / str(head.chain), is_backlog=True)


def test_records_that_another_process_delivers_between_two_readings_are_not_lost(tmp_path: Path) -> None:
    spool, view = spooled(tmp_path, 20)
    view.refresh()
    first, second = view.segments[:2]
    view.load(second)
    Depot().deliver(spool)
    assert not first.path.exists()
    for segment in (first, second):
        view.load(segment)
        assert view.lost(segment, is_dead=False) == []


def test_a_view_sees_records_appear_once(tmp_path: Path) -> None:
    spool, view = spooled(tmp_path, 5)
    assert view.refresh() == []  # the backlog
    for number in range(5, 15):
        spool.append(report(number))
    assert [record.body for record in view.refresh()] == [report(number) for number in range(5, 15)]
    assert view.refresh() == []
    assert view.pending_count() == 16
    assert (view.next, view.head) == (spool.heads()[0].next, spool.heads()[0].head)


def test_the_head_is_found_when_the_last_segment_is_still_empty(tmp_path: Path) -> None:
    _, view = spooled(tmp_path, 20)
    view.refresh()
    last = view.segments[-1]
    header = last.path.read_bytes().partition(b"\n")[0] + b"\n"
    last.path.write_bytes(header)
    again = ChainView(view.directory, is_backlog=True)
    again.refresh()
    assert again.next == last.first
    assert again.head != ""
    assert again.is_done(again.segments[-1])
    again.mark_delivered(0, last.first - 1, again.head)
    again.remove_done(is_durable=False)
    assert [segment.first for segment in again.segments] == [view.segments[-2].first, last.first]


def test_memory_holds_the_records_of_the_last_segment_only(tmp_path: Path) -> None:
    spool, view = spooled(tmp_path, 20)
    view.refresh()
    for number in range(20, 40):
        spool.append(report(number))
        view.refresh()
    assert [segment.first for segment in view.segments if segment.records] == [view.segments[-1].first]
    for segment in view.segments:
        view.load(segment)
        view.unload(segment)
    assert [segment.first for segment in view.segments if segment.records] == [view.segments[-1].first]
