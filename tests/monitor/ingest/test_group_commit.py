"""Those who ask at once are answered together."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from monitor.ingest.group_commit import GroupCommit, TooMany
from tests.waiting import eventually

HELD, TIMEOUT_SECONDS = "held", 10.0


class Halves:
    """Answers with half of what is asked; whoever asks for ``HELD`` is let go at the end of ``held``."""

    def __init__(self, *, most: int = 100, may_wait: int = 100) -> None:
        self.asked: list[list[int | str]] = []
        self._released = threading.Semaphore(0)
        self.together = GroupCommit(self._answer_all, most=most, weight=_weight, may_wait=lambda: may_wait)

    def _answer_all(self, asked: Sequence[int | str]) -> list[float]:
        self.asked.append(list(asked))
        if HELD in asked:
            assert self._released.acquire(timeout=TIMEOUT_SECONDS)
        return [0.0 if one == HELD else int(one) / 2 for one in asked]

    @contextmanager
    def held(self, threads: ThreadPoolExecutor) -> Iterator[None]:
        """Somebody is being answered meanwhile."""
        first = threads.submit(self.together.submit, HELD)
        try:
            assert eventually(lambda: self.asked[-1:] == [[HELD]])
            yield
        finally:
            self._released.release()
        assert first.result() == 0.0

    def ask(self, threads: ThreadPoolExecutor, *asked: int | str) -> list[Future[float]]:
        """Each waits when this ends, in this order."""
        futures = []
        for waiting, one in enumerate(asked, start=self.together.waiting + 1):
            futures.append(threads.submit(self.together.submit, one))
            assert eventually(lambda waiting=waiting: self.together.waiting == waiting)  # type: ignore[misc]
        return futures


def _weight(asked: int | str) -> int:
    return 1 if isinstance(asked, str) else max(asked, 1)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_who_is_alone_is_answered_at_once_in_his_own_thread() -> None:
    answered_in: GroupCommit[int, int] = GroupCommit(
        lambda asked: [threading.get_ident() for _ in asked], most=9
    )
    assert [answered_in.submit(1), answered_in.submit(2)] == [threading.get_ident()] * 2


def test_those_who_come_meanwhile_are_answered_together_and_each_gets_his_own(
    threads: ThreadPoolExecutor,
) -> None:
    halves = Halves()
    with halves.held(threads):
        futures = halves.ask(threads, 3, 1, 2)
    assert [future.result() for future in futures] == [1.5, 0.5, 1.0]
    assert halves.asked == [[HELD], [3, 1, 2]]


def test_no_more_are_answered_together_than_weigh_what_may_be_and_who_weighs_more_is_alone(
    threads: ThreadPoolExecutor,
) -> None:
    halves = Halves(most=5)
    with halves.held(threads):
        futures = halves.ask(threads, 2, 3, 1, 9, 4)
    assert [future.result() for future in futures] == [1.0, 1.5, 0.5, 4.5, 2.0]
    assert halves.asked == [[HELD], [2, 3], [1], [9], [4]]


def test_who_finds_as_many_waiting_as_may_is_refused(threads: ThreadPoolExecutor) -> None:
    halves = Halves(may_wait=2)
    with halves.held(threads):
        futures = halves.ask(threads, 1, 2)
        with pytest.raises(TooMany, match="2 requests wait already"):
            halves.together.submit(3)
    assert [future.result() for future in futures] == [0.5, 1.0]
    assert halves.together.submit(3) == 1.5  # there is room again


def test_what_goes_wrong_is_told_to_each_and_the_next_are_answered(threads: ThreadPoolExecutor) -> None:
    halves = Halves(most=3)
    with halves.held(threads):
        wrong = halves.ask(threads, 1, "no number")
        right = halves.ask(threads, 3)
    for future in wrong:
        with pytest.raises(ValueError, match="invalid literal for int"):
            future.result()
    assert [future.result() for future in right] == [1.5]


def test_none_of_very_many_is_forgotten() -> None:
    halves = Halves()
    with ThreadPoolExecutor(32) as threads:
        assert list(threads.map(halves.together.submit, range(5000))) == [
            number / 2 for number in range(5000)
        ]
    assert sorted(one for asked in halves.asked for one in asked) == list(range(5000))
