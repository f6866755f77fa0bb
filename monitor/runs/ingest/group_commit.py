"""Group commit: the first caller executes; callers that arrive meanwhile queue and form the next batch.

The cost of a transaction is paid once for all callers of a batch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


class QueueFull(Exception):
    """The queue has its maximum length; the request was not executed."""


class _QueuedRequest(Generic[Request, Result]):
    """A request whose caller waits for *wake_up*.

    When the caller wakes up, either the request is done or the caller has to execute the next batch.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.wake_up = threading.Semaphore(0)
        self.results: list[Result | Exception] = []  # its only result, once the request is done
        self.error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return bool(self.results) or self.error is not None

    def result(self) -> Result:
        result = self.results[0] if self.error is None else self.error
        if isinstance(result, BaseException):
            raise result
        return result


class GroupCommit(Generic[Request, Result]):
    """Executes the requests of concurrent threads in batches, one batch at a time, in one of these threads.

    Args:
        execute: executes a batch; returns for each request, in order, its result or an exception, which
            ``submit`` raises. If *execute* itself raises, ``submit`` raises that error for every request.
        most: the maximum weight of a batch; a heavier request forms a batch of its own.
        weight: returns the weight of a request.
        max_queued: returns the maximum number of requests that wait.
        gather_seconds: how long a batch may wait for the requests that are announced: each of them makes the
            batch a little heavier, and saves a batch.
    """

    def __init__(
        self,
        execute: Callable[[Sequence[Request]], Sequence[Result | Exception]],
        *,
        most: int,
        weight: Callable[[Request], int] = lambda _: 1,
        max_queued: Callable[[], float] = lambda: float("inf"),
        gather_seconds: float = 0.0,
    ) -> None:
        self._execute = execute
        self._most = most
        self._weight = weight
        self._max_queued = max_queued
        self._gather_seconds = gather_seconds
        self._lock = threading.Lock()  # guards the attributes below
        self._queue: deque[_QueuedRequest[Request, Result]] = deque()
        self._is_executing = False
        self._announced: set[int] = set()  # threads that are about to submit a request
        self._has_arrived = threading.Condition(self._lock)

    @property
    def queued(self) -> int:
        """Return the number of requests that wait."""
        return len(self._queue)

    @contextmanager
    def announced(self) -> Iterator[None]:
        """Let batches wait for the request that this thread submits in the block, or until the block ends."""
        thread = threading.get_ident()
        with self._lock:
            self._announced.add(thread)
        try:
            yield
        finally:
            with self._lock:
                self._arrive(thread)

    def _arrive(self, thread: int) -> None:
        """End the announcement of *thread*, if there is one; the caller holds the lock."""
        self._announced.discard(thread)
        if not self._announced:
            self._has_arrived.notify_all()

    def _gather(self) -> None:
        """Wait until the announced requests are queued, but not for longer than ``gather_seconds``."""
        with self._lock:
            self._has_arrived.wait_for(lambda: not self._announced, self._gather_seconds)

    def submit(self, request: Request) -> Result:
        """Execute *request*, alone or in a batch, and return its result.

        Raises:
            QueueFull: the request was not executed.
            Exception: *execute* returned this exception for the request, or raised it.
        """
        mine = _QueuedRequest[Request, Result](request)
        with self._lock:
            self._arrive(threading.get_ident())
            must_wait = self._is_executing
            if must_wait and len(self._queue) >= self._max_queued():
                raise QueueFull(f"{len(self._queue)} requests wait already")
            if must_wait:
                self._queue.append(mine)
            self._is_executing = True
        if must_wait:
            mine.wake_up.acquire()
        if mine.is_done:
            return mine.result()
        self._gather()
        batch = [mine, *self._dequeue(self._most - self._weight(request))]
        try:
            results = self._execute([each.request for each in batch])
            for each, result in zip(batch, results, strict=True):
                each.results.append(result)
        except BaseException as error:  # noqa: BLE001  # every caller of the batch raises it
            for each in batch:
                each.error = error
        finally:
            self._start_next_batch()
            for each in batch[1:]:
                each.wake_up.release()
        return mine.result()

    def _dequeue(self, weight: int) -> list[_QueuedRequest[Request, Result]]:
        """Remove and return the oldest queued requests whose weights add up to at most *weight*."""
        batch = []
        with self._lock:
            while self._queue and (weight := weight - self._weight(self._queue[0].request)) >= 0:
                batch.append(self._queue.popleft())
        return batch

    def _start_next_batch(self) -> None:
        """Let the caller of the oldest queued request execute the next batch."""
        with self._lock:
            if self._queue:
                self._queue.popleft().wake_up.release()
            else:
                self._is_executing = False
