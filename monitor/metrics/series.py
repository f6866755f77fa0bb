"""Metrics of series: states, times, durations, stages, forecasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from monitor.forecasts.quantiles import quantile
from monitor.metrics import definitions as of
from monitor.metrics import series_sql
from monitor.metrics.definitions import Group
from monitor.models.run import State

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from monitor.metrics.scope import ScrapeScope
    from monitor.metrics.series_sql import SeriesResult

_TOTALS = {"total.seconds": "total", "total_essential.seconds": "essential", "total_core.seconds": "core"}


def collect(scope: ScrapeScope) -> Iterator[Metric]:
    """Yield the families of the groups that are asked for; nothing is read for the others."""
    groups = scope.request.groups
    newest: Sequence[SeriesResult] = []
    if groups & {Group.SERIES, Group.STAGES}:
        newest = series_sql.results(scope.keys)
    if Group.SERIES in groups:
        yield from _sizes(scope, newest)
        yield _info(scope)
        yield from _states(scope, newest)
        yield from _times(scope, newest)
        yield _durations(scope, newest)
    if Group.STAGES in groups:
        yield from _stages(scope, newest)
    if Group.FORECASTS in groups:
        yield from _forecasts(scope)


def _sizes(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Iterator[Metric]:
    counts = Counter(each.state for each in newest if each.state)
    by_state = of.SERIES_COUNT.family()
    for state in State:
        if counts[state]:
            by_state.add_metric([state], counts[state])
    by_state.add_metric(["none"], len(scope.described) - counts.total())
    yield by_state
    for definition, number in (
        (of.SERIES_EXPORTED, len(scope.described)),
        (of.SERIES_LEFT_OUT, scope.total - len(scope.described)),
    ):
        family = definition.family()
        family.add_metric([], number)
        yield family


def _info(scope: ScrapeScope) -> Any:
    family, sites = of.SERIES_INFO.family(), series_sql.sites(scope.keys)
    for key, series in scope.described.items():
        values = [series.name, series.suite, series.probe, series.reporter, sites.get(key, "")]
        family.add_metric([], dict(zip(of.SERIES_INFO.labels, values, strict=True)))
    return family


def _states(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Iterator[Metric]:
    states, passed = of.SERIES_STATE.family(), of.SERIES_PASSED.family()
    for each in newest:
        if each.state:
            name, suite, *_ = scope.described[each.series]
            states.add_metric([name, suite, each.state], 1)
            passed.add_metric([name, suite], each.state == State.PASSED)
    yield from (states, passed)


def _times(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Iterator[Metric]:
    results, ages, successes = (each.family() for each in (of.LAST_RESULT, of.RESULT_AGE, of.LAST_SUCCESS))
    for each in newest:
        labels = scope.described[each.series][:2]
        if each.ended_at is not None:
            results.add_metric(labels, each.ended_at.timestamp())
            ages.add_metric(labels, max((scope.now - each.ended_at).total_seconds(), 0.0))
        if each.success_end is not None:
            successes.add_metric(labels, each.success_end.timestamp())
    yield from (results, ages, successes)


def _durations(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Any:
    family = of.DURATION.family()
    for series, metric, value in series_sql.totals(newest):
        name, suite, *_ = scope.described[series]
        family.add_metric([name, suite, _TOTALS[metric]], value)
    return family


def _stages(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Iterator[Metric]:
    family, left_out = of.STAGE.family(), of.STAGES_LEFT_OUT.family()
    numbers: Counter[int] = Counter()
    for series, metric, value in series_sql.stages(newest):
        numbers[series] += 1
        if numbers[series] <= series_sql.MOST_STAGES:
            name, suite, *_ = scope.described[series]
            family.add_metric([name, suite, metric.removeprefix("stage.").removesuffix(".seconds")], value)
    left_out.add_metric([], sum(number > series_sql.MOST_STAGES for number in numbers.values()))
    yield from (family, left_out)


def _forecasts(scope: ScrapeScope) -> Iterator[Metric]:
    family, probabilities = of.FORECAST.family(), of.SUCCESS.family()
    for series, quantiles in series_sql.forecasts(scope.keys, scope.now):
        name, suite, *_ = scope.described[series]
        for level in series_sql.LEVELS:
            family.add_metric([name, suite, f"{level:g}"], quantile(quantiles, level))
    for series, probability in series_sql.success_probabilities(scope.keys):
        probabilities.add_metric(scope.described[series][:2], probability)
    yield from (family, probabilities)
