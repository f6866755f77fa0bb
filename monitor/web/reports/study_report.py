"""Compute the whole study of two grids from the runs of the depot; ``layout`` makes tables of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from forecasting.evaluation.study import WARM_UP
from monitor.analysis.forecasts.study import Study, study
from monitor.analysis.performance import passed_runs
from monitor.analysis.performance.passed_runs import TOTALS
from monitor.analysis.performance.series_statistics import NoPassedRuns, SeriesStatistics, series_statistics
from monitor.depot.series.segments import current_bindings
from monitor.models import DemoWeather, Series
from monitor.web.reports.normalised import NormalisedLine, normalised
from monitor.web.reports.outcomes import Outcomes, outcomes
from monitor.web.reports.passed_together import passed_together
from monitor.web.reports.published_numbers import GRIDS

if TYPE_CHECKING:
    from collections.abc import Collection

    from monitor.analysis.outcomes.counts import SuccessRates

CIRCLE = "circle"
MOST_SERIES = 10  # of a probe: those with the most runs have tables and figures


class NoRuns(Exception):
    """No series of the study has a run that passed or failed; the message says which probes were sought."""


@dataclass(frozen=True)
class StudyRequest:
    """What to study.

    Attributes:
        application, probe: names of probes; the first is forecast from the second.
        grid: whose published numbers stand beside: a key of ``GRIDS``. None: that of the demo's weather.
        since: only runs with slots from then on; None: all.
        warm_up: pairs on which the methods of forecasting first train.
    """

    application: str = "preco"
    probe: str = "gather"
    grid: str | None = None
    since: datetime | None = None
    warm_up: int = WARM_UP

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes whose durations and errors are described."""
        return tuple(dict.fromkeys((self.probe, CIRCLE, self.application)))


@dataclass(frozen=True)
class NormalisedPair:
    """One total of an application and of a probe with a common resource, normalised."""

    metric: str
    application: NormalisedLine
    probe: NormalisedLine


@dataclass(frozen=True)
class StudyReport:
    """All figures of the study.

    Attributes:
        grid: whose published numbers are compared, a key of ``GRIDS``; None: none.
        weathers: the weathers of the demo's grid during the runs, oldest first; none without a demo.
        scale: the number of seconds of the grid per second, 1 if that is not the same for all runs.
        outcomes: of the runs of all series.
        together: pairs of runs of the probe and Circle.
        probe_of: the probe of each series that has passed or failed runs, by name.
        statistics: by series, for those with the most runs; the rest is in *left_out*.
        pairs: of an application's and a probe's series with a common resource.
        forecasts: the table of errors of forecasts.
    """

    request: StudyRequest
    made_at: datetime
    grid: str | None
    weathers: Sequence[DemoWeather]
    scale: float
    outcomes: Outcomes
    together: SuccessRates
    probe_of: Mapping[str, str]
    statistics: Mapping[str, SeriesStatistics]
    left_out: Sequence[str]
    pairs: Sequence[NormalisedPair]
    forecasts: Study

    def of_probe(self, probe: str) -> list[SeriesStatistics]:
        """Return the statistics of the series of *probe*."""
        return [found for name, found in self.statistics.items() if self.probe_of[name] == probe]


def study_report(request: StudyRequest, now: datetime) -> StudyReport:
    """Return the study of the runs in the depot until *now*.

    Raises:
        NoRuns: no series of its probes has a run that passed or failed.
        TooManySamples: a metric has more samples than are read at once.
    """
    series = list(Series.objects.filter(probe__in=request.probes).order_by("sort_name"))
    found = outcomes(series, request.since, now)
    if found is None:
        since = f" since {request.since:%Y-%m-%d %H:%M} UTC" if request.since else ""
        raise NoRuns(f"no run of {', '.join(request.probes)} has passed or failed{since}")
    weathers = DemoWeather.objects.between(found.first, found.last)
    described, left_out = _chosen(series, found, request)
    partners = _partners(described, request)
    end, scale = found.last + timedelta.resolution, _scale(weathers, found.first)
    return StudyReport(
        request=request,
        made_at=now,
        grid=request.grid or _grid_of(weathers),
        weathers=weathers,
        scale=scale,
        outcomes=found,
        together=passed_together(series, (request.probe, CIRCLE), found.first, found.last, weathers),
        probe_of={member.name: member.probe for member in series if member.name in found.rates},
        statistics=_statistics(described, partners, (found.first, end), scale),
        left_out=left_out,
        pairs=_pairs(partners, request, found.first, end),
        forecasts=study(request.application, request.probe, warm_up=request.warm_up, since=request.since),
    )


def _scale(weathers: Sequence[DemoWeather], first: datetime) -> float:
    scales = {weather.scale for weather in weathers}
    is_known = weathers and weathers[0].since <= first
    return scales.pop() if is_known and len(scales) == 1 else 1.0


def _grid_of(weathers: Sequence[DemoWeather]) -> str | None:
    newest = weathers[-1].profile if weathers else None
    return newest if newest in GRIDS else None


def _chosen(
    series: Collection[Series], found: Outcomes, request: StudyRequest
) -> tuple[list[Series], list[str]]:
    """Return the series to describe, in the order of their probes, and the names of the others with runs."""
    ran = [member for member in series if member.name in found.rates]
    described: list[Series] = []
    for probe in request.probes:
        own = [member for member in ran if member.probe == probe]
        own.sort(key=lambda member: (-found.rates[member.name].passed, member.name))
        described += own[:MOST_SERIES]
    return described, [member.name for member in ran if member not in described]


def _partners(described: Sequence[Series], request: StudyRequest) -> dict[Series, list[Series]]:
    """Return for each series of the application the series of other probes that share a resource with it."""
    bindings = current_bindings([member.pk for member in described])
    bound = {key: set(chain.from_iterable(roles.values())) for key, roles in bindings.items()}
    return {
        member: [
            other
            for other in described
            if other.probe != member.probe and bound.get(member.pk, set()) & bound.get(other.pk, set())
        ]
        for member in described
        if member.probe == request.application
    }


def _statistics(
    described: Sequence[Series],
    partners: Mapping[Series, Sequence[Series]],
    window: tuple[datetime, datetime],
    scale: float,
) -> dict[str, SeriesStatistics]:
    found = {}
    for member in described:
        try:
            found[member.name] = series_statistics(member, *window, partners.get(member, ()), scale)
        except NoPassedRuns:  # its failures are counted
            continue
    return found


def _pairs(
    partners: Mapping[Series, Sequence[Series]], request: StudyRequest, start: datetime, end: datetime
) -> list[NormalisedPair]:
    pairs = []
    for application, others in partners.items():
        own = passed_runs.read(application, start, end).of_newest_segment()
        for other in (other for other in others if other.probe == request.probe):
            of_probe = passed_runs.read(other, start, end).of_newest_segment()
            for metric in TOTALS:
                first = normalised(application.name, own, metric)
                second = normalised(other.name, of_probe, metric)
                if first and second:
                    pairs.append(NormalisedPair(metric, first, second))
    return pairs
