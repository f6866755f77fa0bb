"""Group commit: the first caller executes; callers that arrive meanwhile form the next batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from monitor.runs.ingest.group_commit import GroupCommit, QueueFull
from tests.waiting import eventually

HELD, TIMEOUT_SECONDS = "held", 60.0


class Halves:
    """Halves numbers by group commit; a request ``HELD`` is executed until the end of ``held``."""

    def __init__(self, *, most: int = 100, max_queued: int = 100, gather_seconds: float = 0.0) -> None:
        self.batches: list[list[int | str]] = []
        self._released = threading.Semaphore(0)
        self.group = GroupCommit(
            self._execute,
            most=most,
            weight=_weight,
            max_queued=lambda: max_queued,
            gather_seconds=gather_seconds,
        )

    def _execute(self, requests: Sequence[int | str]) -> list[float]:
        self.batches.append(list(requests))
        if HELD in requests:
            assert self._released.acquire(timeout=TIMEOUT_SECONDS)
        return [0.0 if request == HELD else int(request) / 2 for request in requests]

    @contextmanager
    def held(self, threads: ThreadPoolExecutor) -> Iterator[None]:
        """Execute a request during the block."""
        first = threads.submit(self.group.submit, HELD)
        try:
            assert eventually(lambda: self.batches[-1:] == [[HELD]])
            yield
        finally:
            self._released.release()
        assert first.result() == 0.0

    def submit(self, threads: ThreadPoolExecutor, *requests: int | str) -> list[Future[float]]:
        """Submit *requests* in this order; return when all are queued."""
        futures = []
        for queued, request in enumerate(requests, start=self.group.queued + 1):
            futures.append(threads.submit(self.group.submit, request))
            assert eventually(lambda queued=queued: self.group.queued == queued)  # type: ignore[misc]
        return futures


def _weight(request: int | str) -> int:
    return 1 if isinstance(request, str) else max(request, 1)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_a_single_caller_executes_in_its_own_thread() -> None:
    group: GroupCommit[int, int] = GroupCommit(
        lambda requests: [threading.get_ident() for _ in requests], most=9
    )
    assert [group.submit(1), group.submit(2)] == [threading.get_ident()] * 2


def test_callers_that_arrive_meanwhile_form_one_batch_and_get_their_own_results(
    threads: ThreadPoolExecutor,
) -> None:
    halves = Halves()
    with halves.held(threads):
        futures = halves.submit(threads, 3, 1, 2)
    assert [future.result() for future in futures] == [1.5, 0.5, 1.0]
    assert halves.batches == [[HELD], [3, 1, 2]]


def test_a_batch_has_a_maximum_weight_and_a_heavier_request_is_alone(
    threads: ThreadPoolExecutor,
) -> None:
    halves = Halves(most=5)
    with halves.held(threads):
        futures = halves.submit(threads, 2, 3, 1, 9, 4)
    assert [future.result() for future in futures] == [1.0, 1.5, 0.5, 4.5, 2.0]
    assert halves.batches == [[HELD], [2, 3], [1], [9], [4]]


def test_a_caller_is_refused_while_the_queue_is_full(threads: ThreadPoolExecutor) -> None:
    halves = Halves(max_queued=2)
    with halves.held(threads):
        futures = halves.submit(threads, 1, 2)
        with pytest.raises(QueueFull, match="2 requests wait already"):
            halves.group.submit(3)
    assert [future.result() for future in futures] == [0.5, 1.0]
    assert halves.group.submit(3) == 1.5  # the queue is empty again


def test_an_error_is_raised_by_each_caller_of_its_batch_only(threads: ThreadPoolExecutor) -> None:
    halves = Halves(most=3)
    with halves.held(threads):
        wrong = halves.submit(threads, 1, "no number")
        right = halves.submit(threads, 3)
    for future in wrong:
        with pytest.raises(ValueError, match="invalid literal for int"):
            future.result()
    assert [future.result() for future in right] == [1.5]


def test_a_batch_waits_for_an_announced_request(threads: ThreadPoolExecutor) -> None:
    halves = Halves(gather_seconds=TIMEOUT_SECONDS)
    with halves.group.announced():
        others = [threads.submit(halves.group.submit, request) for request in (4, 4)]
        assert eventually(lambda: halves.group.queued == 1)  # behind the one that forms the batch
        assert halves.group.submit(2) == 1.0
    assert [other.result() for other in others] == [2.0, 2.0]
    assert halves.batches == [[4, 4, 2]]


def test_a_batch_waits_no_longer_if_an_announced_request_is_refused(threads: ThreadPoolExecutor) -> None:
    halves = Halves(gather_seconds=TIMEOUT_SECONDS)
    with halves.group.announced():
        others = [threads.submit(halves.group.submit, request) for request in (4, 4)]
        assert eventually(lambda: halves.group.queued == 1)
    assert [other.result() for other in others] == [2.0, 2.0]
    assert halves.batches == [[4, 4]]


def test_a_batch_waits_for_an_announced_request_only_for_a_moment(threads: ThreadPoolExecutor) -> None:
    halves = Halves(gather_seconds=0.01)
    with halves.group.announced():
        assert threads.submit(halves.group.submit, 4).result() == 2.0
    assert halves.batches == [[4]]


def test_every_one_of_many_requests_is_executed_once() -> None:
    halves = Halves()
    with ThreadPoolExecutor(32) as threads:
        assert list(threads.map(halves.group.submit, range(5000))) == [number / 2 for number in range(5000)]
    assert sorted(int(request) for batch in halves.batches for request in batch) == list(range(5000))
