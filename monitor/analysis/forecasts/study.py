"""Repeat the published study of two grids with the runs of the depot.

The study compares forecasts of an application from its own history, from a probe, and from both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from forecasting.base import Source
from forecasting.evaluation.published_predictions import METRICS
from forecasting.evaluation.study import WARM_UP, StudyColumn, error_table
from forecasting.reading.histories import RunHistory
from monitor.analysis.forecasts.issue import as_observation
from monitor.depot.samples.pairing import nearest_known
from monitor.depot.samples.read import history
from monitor.depot.series.segments import current_bindings, current_segments
from monitor.models import Metric, Series

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from numpy.typing import NDArray

    from forecasting.reading.histories import Kind

TOTAL = "total.seconds"
APPLICATION: Kind = "application"
PROBE: Kind = "probe"


@dataclass(frozen=True)
class StudyFacts:
    """Facts about the runs of the studied applications.

    Attributes:
        applications: the number of series.
        runs: the number of runs.
        period_seconds: the time from the first run to the last.
        total_seconds: the mean total of a run.
        probe_age_seconds: the median age of a probe's newest run when a run of an application started.
    """

    applications: int
    runs: int
    period_seconds: float
    total_seconds: float
    probe_age_seconds: float | None


@dataclass(frozen=True)
class Study:
    """The *columns* of the table, by metric; *facts* is None if the applications have no runs."""

    columns: Mapping[str, StudyColumn]
    facts: StudyFacts | None

    @property
    def is_empty(self) -> bool:
        return not any(column.n for column in self.columns.values())


def study(application: str, probe: str, *, warm_up: int = WARM_UP, since: datetime | None = None) -> Study:
    """Return the study of *application* with *probe*, which are names of probes.

    Each series of *application* is paired with the series of *probe* that share a resource. Only values of
    current segments count, and with *since* only values from then on; the methods first train on *warm_up*
    pairs.
    """
    found = _histories(application, probe, since)
    return Study(error_table(found, warm_up=warm_up), _facts(found))


def _histories(application: str, probe: str, since: datetime | None) -> list[RunHistory]:
    """Return the histories of runs; each application and its probes form a group."""
    series = Series.objects.filter(probe__in=[application, probe]).order_by("sort_name")
    segments = current_segments(series)
    bound = {pk: set(chain.from_iterable(roles.values())) for pk, roles in current_bindings(segments).items()}
    applications = [member for member in series if member.probe == application and member.pk in bound]
    probes = [member for member in series if member.probe == probe and member.pk in bound]
    groups = [
        (member, [other for other in probes if bound[member.pk] & bound[other.pk]]) for member in applications
    ]
    return [
        found
        for target, near in groups
        for member, kind in [(target, APPLICATION), *((other, PROBE) for other in near)]
        for found in _of_segment(target.name, member.name, kind, segments[member.pk], since)
    ]


def _of_segment(
    group: str, series: str, kind: Kind, segment: int, since: datetime | None
) -> Iterator[RunHistory]:
    for metric in Metric.objects.filter(segment=segment, name__in=METRICS).order_by("name"):
        known = [as_observation(point) for point in history(metric, start=since)]
        yield RunHistory(group, Source(series, metric.name), kind, known)


def _facts(found: Sequence[RunHistory]) -> StudyFacts | None:
    totals = [history for history in found if history.source.metric == TOTAL and history.observations]
    runs = [seen for history in totals if history.kind == APPLICATION for seen in history.observations]
    if not runs:
        return None
    times = [seen.time_seconds for seen in runs]
    ages = [age for history in totals if history.kind == APPLICATION for age in _probe_ages(history, totals)]
    return StudyFacts(
        applications=sum(history.kind == APPLICATION for history in totals),
        runs=len(runs),
        period_seconds=max(times) - min(times),
        total_seconds=fmean(seen.value for seen in runs),
        probe_age_seconds=median(ages) if ages else None,
    )


def _probe_ages(target: RunHistory, totals: Sequence[RunHistory]) -> list[float]:
    """Return the age of the newest known probe run at the start of each run of *target*, in seconds.

    The probe runs are those in *totals* that belong to the group of *target*. Runs before which no probe run
    was known are left out.
    """
    probes = [history for history in totals if history.kind == PROBE and history.group == target.group]
    observed = sorted(
        (seen.time_seconds, seen.known_at_seconds) for history in probes for seen in history.observations
    )
    if not observed:
        return []
    times, known_at = (np.array(column) for column in zip(*observed, strict=True))
    asked = np.array([run.time_seconds for run in target.observations])
    nearest = nearest_known(_micros(times), _micros(known_at), _micros(asked))
    ages: list[float] = (asked - times[nearest])[nearest >= 0].tolist()
    return ages


def _micros(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(seconds * 1e6).astype(np.int64)
