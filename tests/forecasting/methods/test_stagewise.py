from __future__ import annotations

import random

import pytest

from forecasting.base import Source
from forecasting.methods import stagewise

HOUR_SECONDS = 3600.0
COPY, COMPUTE, CLEAN = (f"stage.{name}.seconds" for name in ("copy", "compute", "clean"))


def followed(hours: int, *, counted: tuple[str, ...]) -> tuple[stagewise.Method, random.Random]:
    """Return a method that learned three stages, of which *counted* make the total, and two of a probe."""
    draw = random.Random(12)
    method = stagewise.Method()
    for hour in range(hours):
        at = hour * HOUR_SECONDS
        network, load = draw.lognormvariate(0.0, 0.5), draw.lognormvariate(0.0, 0.2)
        probe(method, at, network, load)
        own = {COPY: 50.0 * network, COMPUTE: 200.0 * load, CLEAN: 40.0 + draw.random()}
        for name, seconds in own.items():
            method.observe_predictor(Source("", name), at, at + 900.0, seconds)
        method.update(at, sum(own[name] for name in counted))
    return method, draw


def probe(method: stagewise.Method, at: float, network: float, load: float) -> None:
    for name, seconds in ((COPY, 5.0 * network), (COMPUTE, 20.0 * load)):
        method.observe_predictor(Source("gather", name), at - 600.0, at - 300.0, seconds)


def test_each_stage_is_forecast_from_the_same_stage_of_a_probe_and_the_forecasts_are_summed() -> None:
    method, _ = followed(60, counted=(COPY, COMPUTE, CLEAN))
    at = 60 * HOUR_SECONDS
    probe(method, at, network=3.0, load=0.8)
    stages = method.stages(at)
    assert {name: stage.seconds for name, stage in stages.items()} == pytest.approx(
        {COPY: 150.0, COMPUTE: 160.0, CLEAN: 40.5}, rel=0.02
    )
    assert stages[COPY].predictor == Source("gather", COPY)
    assert stages[CLEAN].predictor is None
    assert method.forecast(at).median == pytest.approx(350.5, rel=0.01)


@pytest.mark.parametrize("counted", [(COPY, COMPUTE), (COMPUTE,), (COPY, CLEAN)])
def test_which_stages_make_the_total_is_learned(counted: tuple[str, ...]) -> None:
    method, _ = followed(60, counted=counted)
    at = 60 * HOUR_SECONDS
    probe(method, at, network=3.0, load=0.8)
    assert sorted(method.stages(at)) == sorted(counted)
    actual = {COPY: 150.0, COMPUTE: 160.0, CLEAN: 40.5}
    assert method.forecast(at).median == pytest.approx(sum(actual[name] for name in counted), rel=0.02)


def test_the_unexplained_rest_is_forecast_by_its_median() -> None:
    method = stagewise.Method()
    for hour in range(40):
        at = hour * HOUR_SECONDS
        method.observe_predictor(Source("", COPY), at, at + 60.0, 10.0)
        method.update(at, 10.0 + (7.0 if hour % 5 else 90.0))
    assert method.forecast(40 * HOUR_SECONDS).median == pytest.approx(17.0)


def test_a_probe_stage_that_the_application_lacks_is_ignored() -> None:
    method = stagewise.Method()
    method.observe_predictor(Source("gather", COPY), 0.0, 10.0, 500.0)
    method.update(20.0, 30.0)
    assert method.forecast(100.0).median == 30.0


@pytest.mark.parametrize("metric", ["total.seconds", "transfer.bytes_per_second", "stage.copy.bytes"])
def test_metrics_that_are_no_stage_durations_are_ignored(metric: str) -> None:
    method = stagewise.Method()
    method.observe_predictor(Source("", metric), 0.0, 10.0, 500.0)
    method.update(0.0, 30.0)
    assert method.stages(100.0) == {}
    assert method.forecast(100.0).median == 30.0
