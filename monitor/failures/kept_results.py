"""Keep what was counted over very many runs for some minutes: counting takes longer than a page may.

Each process keeps its own results, by what the reader sees. Results over few runs are never kept.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.core.exceptions import EmptyResultSet

from monitor.models import Suite
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.run import RunQuerySet

Result = TypeVar("Result")
MANY_RUNS = 100_000
KEPT_FOR = timedelta(minutes=10)
MOST_KEPT = 100


@dataclass(frozen=True)
class Counted(Generic[Result]):
    """A *result*, and when it was counted."""

    result: Result
    at: datetime


class KeptResults:
    """Results by key, at most *most* of them; one of a key is counted at a time."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._results: OrderedDict[Hashable, Counted[Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._counting: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, now: datetime, count: Callable[[], Result]) -> Counted[Result]:
        """Return the result of *key* if it is newer than ``KEPT_FOR``, else that of *count*."""
        with self._lock:
            lock = self._counting.setdefault(key, threading.Lock())
        with lock:
            kept = self._results.get(key)
            if kept is not None and timedelta() <= now - kept.at < KEPT_FOR:
                return kept
            counted = Counted(count(), now)
            with self._lock:
                self._results[key] = counted
                self._results.move_to_end(key)
                while len(self._results) > self._most:
                    dropped, _ = self._results.popitem(last=False)
                    self._counting.pop(dropped, None)
            return counted


results = KeptResults()


def counted_over(
    runs: RunQuerySet,
    user: AbstractBaseUser | AnonymousUser,
    key: Hashable,
    now: datetime,
    count: Callable[[], Result],
) -> Counted[Result]:
    """Return *count()* over *runs*, of some minutes ago if PostgreSQL expects ``MANY_RUNS`` of them.

    *key* tells results of the same reader apart.
    """
    if _expected_rows(runs) < MANY_RUNS:
        return Counted(count(), now)
    return results.get((_visible_suites(user), key), now, count)


def _expected_rows(runs: RunQuerySet) -> int:
    try:
        (plan,) = json.loads(runs.order_by().explain(format="json"))
    except EmptyResultSet:
        return 0
    return int(plan["Plan"]["Plan Rows"])


def _visible_suites(user: AbstractBaseUser | AnonymousUser) -> frozenset[int] | None:
    """Return what decides which series *user* sees: the suites; None stands for all series."""
    if user.is_active and sees_all(user):
        return None
    return frozenset(Suite.objects.visible_to(user).order_by().values_list("pk", flat=True))
