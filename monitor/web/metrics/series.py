"""Metrics of series: states, times, durations, stages, forecasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from monitor.models.run import State
from monitor.web.metrics import definitions as of
from monitor.web.metrics import series_sql
from monitor.web.metrics.definitions import Group
from monitor.web.metrics.text_format import Family, escaped

if TYPE_CHECKING:
    from monitor.web.metrics.scope import ScrapeScope
    from monitor.web.metrics.series_sql import SeriesResult

_TOTALS = {"total.seconds": "total", "total_essential.seconds": "essential", "total_core.seconds": "core"}


def collect(scope: ScrapeScope) -> Iterator[Family]:
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


def _sizes(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Iterator[Family]:
    counts = Counter(each.state for each in newest if each.state)
    by_state = Family(of.SERIES_COUNT)
    for state in State:
        if counts[state]:
            by_state.add(counts[state], state)
    by_state.add(len(scope.described) - counts.total(), "none")
    yield by_state
    for definition, number in (
        (of.SERIES_EXPORTED, len(scope.described)),
        (of.SERIES_LEFT_OUT, scope.total - len(scope.described)),
    ):
        family = Family(definition)
        family.add(number)
        yield family


def _info(scope: ScrapeScope) -> Family:
    family, sites = Family(of.SERIES_INFO), series_sql.sites(scope.keys)
    for key, series in scope.described.items():
        family.add(1, series.name, series.suite, series.probe, series.reporter, sites.get(key, ""))
    return family


def _states(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Iterator[Family]:
    states, passed = Family(of.SERIES_STATE), Family(of.SERIES_PASSED)
    for each in newest:
        if each.state:
            labels = scope.labels[each.series]
            states.add_labelled(1, f'{labels},state="{each.state}"')
            passed.add_labelled(each.state == State.PASSED, labels)
    yield from (states, passed)


def _times(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Iterator[Family]:
    results, ages, successes = Family(of.LAST_RESULT), Family(of.RESULT_AGE), Family(of.LAST_SUCCESS)
    now = scope.now.timestamp()
    for each in newest:
        labels = scope.labels[each.series]
        if each.ended_at is not None:
            results.add_labelled(each.ended_at, labels)
            ages.add_labelled(max(now - each.ended_at, 0.0), labels)
        if each.success_end is not None:
            successes.add_labelled(each.success_end, labels)
    yield from (results, ages, successes)


def _durations(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Family:
    family = Family(of.DURATION)
    for series, metric, value in series_sql.totals(newest):
        family.add_labelled(value, f'{scope.labels[series]},total="{_TOTALS[metric]}"')
    return family


def _stages(scope: ScrapeScope, newest: Sequence[SeriesResult]) -> Iterator[Family]:
    family, left_out = Family(of.STAGE), Family(of.STAGES_LEFT_OUT)
    numbers: Counter[int] = Counter()
    for series, metric, value in series_sql.stages(newest):
        numbers[series] += 1
        if numbers[series] <= series_sql.MOST_STAGES:
            stage = metric.removeprefix("stage.").removesuffix(".seconds")
            family.add_labelled(value, f'{scope.labels[series]},stage="{escaped(stage)}"')
    left_out.add(sum(number > series_sql.MOST_STAGES for number in numbers.values()))
    yield from (family, left_out)


def _forecasts(scope: ScrapeScope) -> Iterator[Family]:
    family, probabilities = Family(of.FORECAST), Family(of.SUCCESS)
    for series, *quantiles in series_sql.forecasts(scope.keys, scope.now):
        for level, value in zip(series_sql.LEVELS, quantiles, strict=True):
            family.add_labelled(value, f'{scope.labels[series]},quantile="{level:g}"')
    for series, probability in series_sql.success_probabilities(scope.keys):
        probabilities.add_labelled(probability, scope.labels[series])
    yield from (family, probabilities)
