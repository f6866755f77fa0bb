"""Choose the worst of very many series, sites, paths or stages, which are numbered. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from monitor.analysis.outcomes.counts import SuccessRates
from monitor.models.natural_order import sort_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.analysis.outcomes.blocks import Numbers

# Returns so many of the numbers it is given, with their names: the first ones in order of names.
NameOrder = Callable[["Numbers", int], Sequence[tuple[int, str]]]


@dataclass(frozen=True)
class KeyedRuns:
    """The runs at each number.

    Attributes:
        passed: how many passed.
        keys: the number of each failed run.
        signatures, excused: the cause of each failed run (0: not classified), and whether it does not count
            against a site.
    """

    passed: Numbers
    keys: Numbers
    signatures: Numbers
    excused: NDArray[np.bool_]

    @cached_property
    def failed(self) -> Numbers:
        return np.bincount(self.keys, minlength=len(self.passed))

    @cached_property
    def not_counted(self) -> Numbers:
        return np.bincount(self.keys[self.excused], minlength=len(self.passed))

    @property
    def judged(self) -> int:
        """How many numbers have runs."""
        return int(np.count_nonzero(self.passed + self.failed))

    def rates(self, key: int) -> SuccessRates:
        return SuccessRates(int(self.passed[key]), int(self.failed[key]), int(self.not_counted[key]))

    def causes(self, keys: Collection[int]) -> dict[int, tuple[int, int]]:
        """Return the most frequent cause of each of *keys* with failed runs, and how many runs it has."""
        own = np.isin(self.keys, np.array(list(keys), np.int64))
        pairs = np.stack([self.keys[own], self.signatures[own]], axis=1)
        different, counts = np.unique(pairs, axis=0, return_counts=True)
        causes: dict[int, tuple[int, int]] = {}
        for (key, signature), runs in zip(different.tolist(), counts.tolist(), strict=True):
            if runs > causes.get(key, (0, 0))[1]:
                causes[key] = (signature, runs)
        return causes

    def worst(self, by_name: NameOrder, most: int) -> list[tuple[int, str]]:
        """Return the *most* numbers with the lowest adjusted success rates, with their names.

        Of equal rates, the one with more failures that count is first, then the first name. A number without
        an adjusted rate is last; one without runs is left out.
        """
        counted = self.failed - self.not_counted
        judged = self.passed + counted
        rate = np.where(judged > 0, self.passed / np.maximum(judged, 1), 2.0)
        keys = np.flatnonzero(self.passed + self.failed)
        order = keys[np.lexsort((-counted[keys], rate[keys]))]
        chosen: list[tuple[int, str]] = []
        while len(chosen) < min(most, len(order)):
            first = order[len(chosen)]
            equal = (rate[order] == rate[first]) & (counted[order] == counted[first])
            chosen += by_name(order[equal], most - len(chosen))
        return chosen


def by_names(names: Sequence[str]) -> NameOrder:
    """Return the natural order of *names*, by their numbers."""
    return lambda keys, most: sorted(((key, names[key]) for key in keys.tolist()), key=_by_name)[:most]


def _by_name(pair: tuple[int, str]) -> str:
    return sort_name(pair[1])
