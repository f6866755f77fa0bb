"""Answer together those who ask at once: what asking costs the depot is paid once for all of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class TooMany(Exception):
    """As many as may wait for an answer do so already."""


class _Waiting(Generic[Asked, Answer]):
    """One who waits for his *turn*: he has been answered then, or is to answer."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.turn = threading.Semaphore(0)
        self.answers: list[Answer] = []  # one, when it is there
        self.error: BaseException | None = None

    @property
    def is_answered(self) -> bool:
        return bool(self.answers) or self.error is not None

    def answer(self) -> Answer:
        if self.error is not None:
            raise self.error
        return self.answers[0]


class GroupCommit(Generic[Asked, Answer]):
    """Whoever asks while nobody answers does so himself, at once, in his own thread. Those who come meanwhile
    wait; then the first of them answers all of them.

    *answer_all* gives an answer for each, in their order; what it raises, each of them raises. Those who are
    answered together do not weigh more than *most*, unless one does alone; at most *may_wait* wait.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[Asked]], Sequence[Answer]],
        *,
        most: int,
        weight: Callable[[Asked], int] = lambda _: 1,
        may_wait: Callable[[], float] = lambda: float("inf"),
    ) -> None:
        self._answer_all = answer_all
        self._most = most
        self._weight = weight
        self._may_wait = may_wait
        self._lock = threading.Lock()  # held for a moment, around what follows
        self._waiting: deque[_Waiting[Asked, Answer]] = deque()
        self._is_answering = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def submit(self, asked: Asked) -> Answer:
        """The answer.

        Raises:
            TooMany: nothing was asked.
            Exception: what *answer_all* raises.
        """
        one = _Waiting[Asked, Answer](asked)
        if not self._is_first(one):
            one.turn.acquire()
        if not one.is_answered:
            self._answer(one)
        return one.answer()

    def _is_first(self, one: _Waiting[Asked, Answer]) -> bool:
        with self._lock:
            if not self._is_answering:
                self._is_answering = True
                return True
            if len(self._waiting) >= self._may_wait():
                raise TooMany(f"{len(self._waiting)} requests wait already")
            self._waiting.append(one)
            return False

    def _answer(self, first: _Waiting[Asked, Answer]) -> None:
        """Answer *first* and those who wait; then it is the turn of the others, and of who is to be next."""
        others = self._taken(self._most - self._weight(first.asked))
        everybody = [first, *others]
        try:
            answers = self._answer_all([one.asked for one in everybody])
            for one, answer in zip(everybody, answers, strict=True):
                one.answers.append(answer)
        except BaseException as error:  # noqa: BLE001  # each raises it in his own thread
            for one in everybody:
                one.error = error
        finally:
            self._hand_on()
            for one in others:
                one.turn.release()

    def _taken(self, weight: int) -> list[_Waiting[Asked, Answer]]:
        """Those who wait, the first of them first, up to this *weight*."""
        taken = []
        with self._lock:
            while self._waiting and (weight := weight - self._weight(self._waiting[0].asked)) >= 0:
                taken.append(self._waiting.popleft())
        return taken

    def _hand_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().turn.release()
            else:
                self._is_answering = False
