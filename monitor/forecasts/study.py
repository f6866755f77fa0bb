"""The study of two grids, repeated on what the depot has: how far off forecasts of an application are by its
own history, by a probe, and by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from forecasting.base import Source
from forecasting.evaluation import study as published
from forecasting.evaluation.study import StudyCell
from forecasting.reading.histories import RunHistory
from monitor.depot.samples.pairing import nearest_known
from monitor.depot.samples.read import history
from monitor.forecasts.issue import as_observation
from monitor.models import Metric, Series
from monitor.series.segments import current_bindings, current_segments

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from numpy.typing import NDArray

    from forecasting.reading.histories import Kind

TOTAL = "total.seconds"
WARM_UP = 10  # as many pairs as the shortest of the training sets takes
APPLICATION: Kind = "application"
PROBE: Kind = "probe"


@dataclass(frozen=True)
class Facts:
    """What the runs of the applications were like: how many, over how long, how long they took, and how old
    the newest run of the probe was when they started; None where there is none."""

    applications: int
    runs: int
    period_seconds: float
    total_seconds: float
    probe_age_seconds: float | None


@dataclass(frozen=True)
class Study:
    """The cells by metric and method, and what they were made from; None: no run to make any from."""

    cells: Mapping[str, Mapping[str, StudyCell]]
    facts: Facts | None

    @property
    def is_empty(self) -> bool:
        return not any(cell.n for row in self.cells.values() for cell in row.values())


def study(application: str, probe: str, *, warm_up: int = WARM_UP, since: datetime | None = None) -> Study:
    """Of every series of *application* with each of *probe* that shares a resource with it, by what the next
    run of each would do: values of other segments do not count."""
    found = _histories(application, probe, since)
    return Study(published.error_table(found, warm_up=warm_up), _facts(found))


def _histories(application: str, probe: str, since: datetime | None) -> list[RunHistory]:
    """Each application with the probes near it is a group of its own."""
    series = Series.objects.filter(probe__in=[application, probe]).order_by("name")
    segments = current_segments(series)
    bound = {pk: set(chain.from_iterable(roles.values())) for pk, roles in current_bindings(segments).items()}
    applications = [one for one in series if one.probe == application and one.pk in bound]
    probes = [one for one in series if one.probe == probe and one.pk in bound]
    groups = [(one, [other for other in probes if bound[one.pk] & bound[other.pk]]) for one in applications]
    return [
        found
        for target, near in groups
        for member, kind in [(target, APPLICATION), *((other, PROBE) for other in near)]
        for found in _of_segment(target.name, member.name, kind, segments[member.pk], since)
    ]


def _of_segment(
    group: str, series: str, kind: Kind, segment: int, since: datetime | None
) -> Iterator[RunHistory]:
    for metric in Metric.objects.filter(segment=segment, name__in=published.METRICS).order_by("name"):
        known = [as_observation(point) for point in history(metric, start=since)]
        yield RunHistory(group, Source(series, metric.name), kind, known)


def _facts(found: Sequence[RunHistory]) -> Facts | None:
    totals = [one for one in found if one.source.metric == TOTAL and one.observations]
    runs = [seen for one in totals if one.kind == APPLICATION for seen in one.observations]
    if not runs:
        return None
    times = [seen.time_seconds for seen in runs]
    ages = [age for one in totals if one.kind == APPLICATION for age in _probe_ages(one, totals)]
    return Facts(
        applications=sum(one.kind == APPLICATION for one in totals),
        runs=len(runs),
        period_seconds=max(times) - min(times),
        total_seconds=fmean(seen.value for seen in runs),
        probe_age_seconds=median(ages) if ages else None,
    )


def _probe_ages(target: RunHistory, totals: Sequence[RunHistory]) -> list[float]:
    """For each run of *target* how long before it the newest known run of a probe of its group had begun."""
    probes = [one for one in totals if one.kind == PROBE and one.group == target.group]
    heard = sorted((seen.time_seconds, seen.known_at_seconds) for one in probes for seen in one.observations)
    if not heard:
        return []
    times, known_at = (np.array(column) for column in zip(*heard, strict=True))
    asked = np.array([run.time_seconds for run in target.observations])
    nearest = nearest_known(_micros(times), _micros(known_at), _micros(asked))
    ages: list[float] = (asked - times[nearest])[nearest >= 0].tolist()
    return ages


def _micros(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(seconds * 1e6).astype(np.int64)
