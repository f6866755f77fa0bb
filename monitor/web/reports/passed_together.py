"""Count the pairs of runs of two probes, next to each other in time, of which both passed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from monitor.analysis.outcomes.counts import SuccessRates
from monitor.analysis.outcomes.in_maintenance import failed_in_maintenance
from monitor.core.db.timestamps import micros
from monitor.depot.series.segments import current_bindings
from monitor.models import FailureSignature
from monitor.models.run import State
from monitor.web.reports.outcomes import judged_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import DemoWeather, Series

FURTHEST_SECONDS = 3600.0  # of the grid: the probes of the study ran hourly, one after the other


class JudgedRuns(NamedTuple):
    """Runs in the order of their *slots*, in microseconds; *is_excused*: failed not by a site's fault."""

    slots: NDArray[np.int64]
    has_passed: NDArray[np.bool_]
    is_excused: NDArray[np.bool_]

    def between(self, start: float, end: float) -> JudgedRuns:
        """Return the runs with slots from *start* until just before *end*."""
        is_within = (self.slots >= start) & (self.slots < end)
        return JudgedRuns(self.slots[is_within], self.has_passed[is_within], self.is_excused[is_within])


def passed_together(
    series: Collection[Series],
    probes: tuple[str, str],
    first: datetime,
    last: datetime,
    weathers: Sequence[DemoWeather],
) -> SuccessRates:
    """Count the pairs of runs of both *probes* from *first* to *last*; a pair passed if both runs did.

    A pair is a run of the first probe and one of the second, of a series with a common resource, that are
    nearest to each other, if both met the same of *weathers* and less than an hour of its grid lies between
    their slots. A pair with an excused failure is excused.
    """
    firsts, seconds = ([member for member in series if member.probe == probe] for probe in probes)
    bindings = current_bindings([member.pk for member in [*firsts, *seconds]])
    bound = {key: set(chain.from_iterable(roles.values())) for key, roles in bindings.items()}
    none: set[str] = set()
    counts = np.zeros(3, np.int64)
    for member in firsts:
        near = [other for other in seconds if bound.get(member.pk, none) & bound.get(other.pk, none)]
        own, others = _runs([member], first, last), _runs(near, first, last)
        for start, end, scale in _speeds(weathers):
            furthest = 1e6 * FURTHEST_SECONDS / scale
            counts += count_pairs(own.between(start, end), others.between(start, end), furthest)
    passed, failed, excused = counts.tolist()
    return SuccessRates(passed, failed, excused)


def _runs(series: Collection[Series], first: datetime, last: datetime) -> JudgedRuns:
    excusing = FailureSignature.objects.filter(counts_against_site=False)
    keys = set(excusing.values_list("pk", flat=True))
    planned = failed_in_maintenance(first, last + timedelta.resolution)
    runs = judged_runs(series, first, last).annotate(in_maintenance=planned).order_by("slot")
    rows = list(runs.values_list("slot", "state", "signature", "in_maintenance"))
    return JudgedRuns(
        np.array([micros(slot) for slot, *_ in rows], np.int64),
        np.array([state == State.PASSED for _, state, *_ in rows], np.bool_),
        np.array([during or signature in keys for *_, signature, during in rows], np.bool_),
    )


def _speeds(weathers: Sequence[DemoWeather]) -> list[tuple[float, float, float]]:
    """Return start and end of each of *weathers*, in microseconds, and its seconds of the grid per second.

    The time before the first one is that of a grid.
    """
    starts = [-np.inf, *(float(micros(weather.since)) for weather in weathers)]
    scales = [1.0, *(weather.scale for weather in weathers)]
    return list(zip(starts, [*starts[1:], np.inf], scales, strict=True))


def count_pairs(own: JudgedRuns, others: JudgedRuns, furthest: float) -> NDArray[np.int64]:
    """Return how many pairs passed, failed and are excused. Pure.

    A pair is a run of *own* and one of *others* that are nearest to each other, the one of *own* first if two
    are as near, less than *furthest* microseconds apart. The excused ones have failed.
    """
    if not len(own.slots) or not len(others.slots):
        return np.zeros(3, np.int64)
    nearest = _nearest(own.slots, others.slots)
    back = len(own.slots) - 1 - _nearest(-others.slots, -own.slots[::-1])
    is_near = np.abs(others.slots[nearest] - own.slots) < furthest
    is_pair = is_near & (back[nearest] == np.arange(len(own.slots)))
    has_passed = own.has_passed & others.has_passed[nearest]
    is_excused = own.is_excused | others.is_excused[nearest]
    return np.array([(is_pair & each).sum() for each in (has_passed, ~has_passed, is_excused)], np.int64)


def _nearest(slots: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of the nearest of the ordered *others* for each of *slots*, the later one of two."""
    after = np.searchsorted(others, slots).clip(max=len(others) - 1)
    before = (after - 1).clip(min=0)
    is_after = np.abs(others[after] - slots) <= np.abs(others[before] - slots)
    return np.where(is_after, after, before)
