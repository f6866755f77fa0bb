"""Notes of the study: what its figures mean, and why they differ from the published ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forecasting.evaluation.published_predictions import ERRORS, METRICS
from monitor.core.units import coarse_seconds, seconds
from monitor.web.reports.published_numbers import GRIDS, TERAGRID

if TYPE_CHECKING:
    from monitor.analysis.forecasts.study import StudyFacts
    from monitor.web.reports.study_report import StudyReport

PUBLISHED_PRECO_EDITION = 2  # the first edition of the weather with the published times of PreCo

DEFINITIONS = (
    "Totals: (i) all stages; (ii) without setup and cleanup; (iii) without setup, cleanup and queue.",
    "Durations are of passed runs of the segment that ran last: runs with one probe version, one set of "
    "parameters and one set of resources.",
    "Std. dev.: of a sample, divided by n - 1. CV: standard deviation / mean. Quantiles are interpolated "
    "linearly. Skewness: adjusted Fisher-Pearson coefficient. Share of variance: cov(stage, total) / "
    "var(total).",
    "Lags: simultaneous, both ran at the same time; right after, the application started less than 30 "
    "minutes after the probe ended; 30 minutes, it started 30 to 60 minutes after.",
    "Success is the share of passed runs among those that passed, failed, broke or timed out; adjusted, "
    "without failures that do not count against a site, or during planned maintenance (excused).",
    "A pair is a run of the probe and one of Circle that are nearest to each other, less than an hour of the "
    "grid apart; it passed if both did, and is excused if one is. The study ran both hourly, one after the "
    "other.",
    'A "-" stands for a figure that was not published, or cannot be computed from so few runs.',
)


def weather_notes(report: StudyReport) -> Iterator[str]:
    """Yield what is known of the grid that the runs met, and whether it is the one they are compared with."""
    if report.grid is None:
        yield "No published numbers stand beside these: --grid chooses a grid."
    if report.grid is not None and not GRIDS[report.grid].preco:
        title, there = GRIDS[report.grid].title, TERAGRID.title
        yield (
            f"PreCo did not run on {title}, whose batch system was not configured. The demo's PreCo has the "
            f"times of {there}, and its predictions stand beside those published for {there}."
        )
    if not report.weathers:
        return
    described = [
        f"{weather.profile} (seed {weather.seed}, edition {weather.edition}, {weather.scale:g} times as fast "
        f"as the grid, since {weather.since:%Y-%m-%d %H:%M} UTC)"
        for weather in report.weathers
    ]
    yield f"The runs met the weather of gridcast's demo: {', then '.join(described)}."
    if any(weather.edition < PUBLISHED_PRECO_EDITION for weather in report.weathers):
        yield (
            "In edition 1 of the weather, PreCo's times were not drawn from the published ones: --days "
            "leaves out runs that met it."
        )
    profiles = {weather.profile for weather in report.weathers}
    if report.grid and report.grid not in profiles:
        yield (
            f"No run met the weather of {GRIDS[report.grid].title}: its numbers show how much two grids "
            "differ, not how well the demo emulates it."
        )
    elif report.grid and len(profiles) > 1:
        yield (
            f"Runs that met another weather than {report.grid} are compared with {GRIDS[report.grid].title} "
            "as well: --days leaves out earlier runs."
        )
    if len(report.weathers) > 1 and report.scale == 1:
        yield "As the speed of the demo changed, measured seconds stand beside the published ones."


def stage_notes(report: StudyReport) -> Iterator[str]:
    """Yield which published stages are not what their names say."""
    if report.grid is not None and not GRIDS[report.grid].has_batch_system:
        yield (
            f"The batch system of {GRIDS[report.grid].title} was not configured: jobs were forked on login "
            "nodes, so the published queue wait is the start-up of a forked job."
        )


def success_notes(report: StudyReport) -> Iterator[str]:
    """Yield what the published success rates leave out, hence which column compares with them."""
    if report.grid is None:
        return
    period = "the first six weeks" if GRIDS[report.grid] is TERAGRID else "a time that was not published"
    yield (
        f"The published rates are of {period}. They leave out failures by a proxy that was not renewed and "
        'announced maintenance, so "Success, adjusted" is the column to compare with them.'
    )


def lag_notes(report: StudyReport) -> list[str]:
    """Return how lags were measured in a demo that is faster than the grid."""
    if report.scale == 1:
        return []
    return [f"Lags are in the time of the grid: 30 minutes took {seconds(1800 / report.scale)} here."]


def difference_notes(report: StudyReport) -> Iterator[str]:
    """Yield the reasons why the figures differ from the published ones."""
    facts = report.forecasts.facts
    if facts is not None:
        yield from _forecast_notes(facts, report.request.application, report.request.probe)
    first, last = report.outcomes.first, report.outcomes.last
    if report.weathers:
        yield (
            f"The demo ran for {coarse_seconds((last - first).total_seconds() * report.scale)} of the grid's "
            "time. The published durations and extremes are of half a year, TeraGrid's success rates of its "
            "first six weeks."
        )
        yield (
            "What the weather does not slow down, such as starting programs and connections, takes its time "
            "on this machine, and counts as many times as much in seconds of the grid."
        )


def _forecast_notes(facts: StudyFacts, application: str, probe: str) -> Iterator[str]:
    yield (
        f"Published: PreCo on {TERAGRID.title}; the number of its runs was not published. Here: {facts.runs} "
        f"runs of {facts.applications} series in {coarse_seconds(facts.period_seconds)}. The fewer they are, "
        "the more a slow run weighs."
    )
    yield (
        f"{application} takes {seconds(facts.total_seconds)} here: the time to start programs and "
        "connections, which no weather changes, is a larger part of it."
    )
    if facts.probe_age_seconds is not None:
        yield (
            f"{probe} started {seconds(facts.probe_age_seconds)} before {application} (median): the "
            "regression helps if the cause of a slow run lasts longer than that."
        )
    yield (
        "TSP is the battery without its first errors. All seven methods are scored on the same runs: those "
        "that each of them could forecast (docs/forecasting.md)."
    )
    yield from _line_notes()


def _line_notes() -> Iterator[str]:
    """Yield what follows from the published errors of the lines, and what cannot be told from them."""
    data, build, compute, queue = METRICS[3:]
    yield (
        "How many first pairs the fixed training sets had was not published; here they have 30. One very "
        "slow run among them bends the line for all runs to come, so these rows differ most from one history "
        "to the next. The published errors of stage data by the fixed line, "
        f"{_against_all_pairs('lrp_first', data)} by all pairs, fit first pairs without such a run. Which "
        "pairs came first was not published."
    )
    yield (
        "One slow run among the last 10 pairs bends the line for the next runs. In the published table this "
        f"shows in stage data: {_against_all_pairs('lrp_last_10', data)} by all pairs. Coefficients of "
        "variation above 200 % tell of a few very large errors. It does not show in the queue, "
        f"{_against_all_pairs('lrp_last_10', queue)}, and in build only without TSP, "
        f"{_against_all_pairs('lrp_last_10', build)}. Why was not published."
    )
    vary = {method: f"{errors[compute].variation_percent} %" for method, errors in ERRORS.items()}
    slow = TERAGRID.durations[compute]
    yield (
        f"The published errors of computation vary by {vary['lrp']} with LRP full and {vary['lrp_last_10']} "
        f"with the last 10, but by {vary['nws']} with TSP, {vary['tsp_lrp']} with TSP+LRP full and "
        f"{vary['lrp_first']} with the fixed line. So lines that were fitted again, and applied to one run "
        "of Gather, had a few very large errors. They fit slow computations of Gather, with a published mean "
        f"of {slow.mean:.2f} s and a maximum of {slow.max:.2f} s: those of PreCo would have shown with TSP, "
        "too. How many were slow, and when, was not published."
    )


def _against_all_pairs(method: str, metric: str) -> str:
    """Return the published errors of *method* against those of the line of all pairs, alone and with TSP."""
    alone, with_tsp = (
        f"{ERRORS[prefix + method][metric].percent} against {ERRORS[prefix + 'lrp'][metric].percent} %"
        for prefix in ("", "tsp_")
    )
    return f"{alone}, with TSP {with_tsp}"


def too_few_runs(report: StudyReport) -> str:
    """Return why the table of errors of forecasts has none of these runs."""
    request, facts = report.request, report.forecasts.facts
    return (
        f"Too few runs to score: {facts.runs if facts else 0} runs of {request.application} have passed. "
        f"Each of its series needs more than {request.warm_up} that started after 10 passed runs of a series "
        f"of {request.probe} with a common resource."
    )
