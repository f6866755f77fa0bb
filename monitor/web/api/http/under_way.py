"""Requests at the same moment: few of a caller that are dear, of one route.

A request is charged when it has ended. Without this, a caller that sends a dozen dear requests at once is
charged for none of them before all have begun.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict

MOST_UNDER_WAY_SECONDS = 1.5  # of one sender and route, in one process
_MOST_COSTS = 10_000
_REMEMBERED = 0.9  # of the cost of a dear request, after each cheaper one
_ANYBODY = ""


class ExpectedCosts:
    """What requests cost of late, and what those under way are expected to cost, in one process.

    Costs are seconds of processor and of statements. A request of a caller is expected to cost as much as the
    caller's dearest one of late; before the first has ended, as much as the dearest of any caller.
    """

    def __init__(self) -> None:
        self._costs: OrderedDict[tuple[str, str], float] = OrderedDict()  # by caller and route
        self._sums: Counter[tuple[str, str]] = Counter()  # microseconds, by sender and route
        self._lock = threading.Lock()

    def begin(self, sender: str, route: str) -> int | None:
        """Return the expected cost of a request, None if those under way are expected to cost too much."""
        with self._lock:
            if self._sums[sender, route] >= MOST_UNDER_WAY_SECONDS * 1_000_000:
                return None
            cost = self._costs.get((sender, route), self._costs.get((_ANYBODY, route), 0.0))
            expected = int(cost * 1_000_000)  # integers: the sum is 0 again
            self._sums[sender, route] += expected
        return expected

    def end(self, sender: str, route: str, expected: int) -> None:
        with self._lock:
            self._sums[sender, route] -= expected
            if not self._sums[sender, route]:
                del self._sums[sender, route]

    def learn(self, caller: str, route: str, seconds: float) -> None:
        with self._lock:
            for name in ((caller, route), (_ANYBODY, route)):
                self._costs[name] = max(seconds, _REMEMBERED * self._costs.pop(name, 0.0))
            while len(self._costs) > _MOST_COSTS:
                self._costs.popitem(last=False)


class UnderWay:
    """A request under way. *sender* is its caller, as far as that is known before it has authenticated."""

    def __init__(self, costs: ExpectedCosts, sender: str) -> None:
        self._costs, self._sender = costs, sender
        self._route, self._expected = "", 0

    def begin(self, route: str) -> bool:
        """Return whether the sender may send a request of *route* now."""
        expected = self._costs.begin(self._sender, route)
        if expected is not None:
            self._route, self._expected = route, expected
        return expected is not None

    def end(self, caller: str = _ANYBODY, seconds: float = 0.0) -> None:
        """Note that the request has ended, and that it did cost *caller* so many *seconds*."""
        if self._route:
            self._costs.end(self._sender, self._route, self._expected)
            self._costs.learn(caller, self._route, seconds)
            self._route = ""
