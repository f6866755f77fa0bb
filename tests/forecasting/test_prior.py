from __future__ import annotations

import random

from forecasting import state
from forecasting.base import Source
from forecasting.evaluation.priors import Teachers
from forecasting.prior import MIN_VALUES, Prior
from forecasting.reading.histories import RunHistory
from forecasting.series import Forecaster, Observation


def history(name: str, count: int, *, first_seconds: float = 0.0) -> RunHistory:
    draw = random.Random(name)
    starts = [first_seconds + 3600.0 * index for index in range(count)]
    runs = [Observation(at, at + 60.0, draw.lognormvariate(3.0, 0.4)) for at in starts]
    return RunHistory("here", Source(name, ""), "application", runs)


def taught(teacher: RunHistory) -> Prior:
    prior = Teachers([teacher]).prior(history("new", 5))
    assert prior is not None
    return prior


def test_a_prior_prefers_the_experts_that_did_well_elsewhere() -> None:
    prior = taught(history("teacher", 100))
    assert prior.absolute["log_level"][1] < prior.absolute["nws"][0]  # the median, and the last value
    assert state.load(Prior, state.dump(prior)) == prior


def test_a_prior_changes_the_first_forecasts_and_fades() -> None:
    prior = taught(history("teacher", 100))
    runs = history("new", 400).observations
    alone, started = Forecaster("auto"), Forecaster.started("auto", prior)
    apart = {}
    for index, run in enumerate(runs):
        if index in (10, 390):
            medians = [each.forecast(run.time_seconds).median for each in (alone, started)]
            apart[index] = abs(medians[0] - medians[1])
        for each in (alone, started):
            each.observe(run)
    assert apart[10] > apart[390]


def test_a_short_series_teaches_nothing() -> None:
    assert Teachers([history("teacher", MIN_VALUES)]).prior(history("new", 5)) is None


def test_series_beside_teach_only_what_was_known_at_the_first_start() -> None:
    beside = history("beside", 100)
    later = history("later", 5, first_seconds=50 * 3600.0)
    assert Teachers(beside=[beside, later]).prior(history("new", 5)) is None
    known = RunHistory("here", beside.source, "application", beside.observations[:50])
    assert Teachers(beside=[beside, later]).prior(later) == Teachers([known]).prior(later)
