"""Forecasts name the predictor that they use."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forecasting.base import Source
from forecasting.series import Forecaster, Observation
from monitor.analysis.forecasts.answer import compute

STAGE = "stage.compute.seconds"
HOUR_SECONDS = 3600.0


def trained_forecaster(method: str) -> tuple[Forecaster, datetime]:
    """Return a forecaster of a total that is twice a probe's stage of half an hour before, and the time."""
    forecaster = Forecaster(method)
    for number in range(1, 21):
        seconds, at = 2.0 + number % 5, number * HOUR_SECONDS
        forecaster.observe(Observation(at - 1800.0, at - 1790.0, seconds), Source("probe", STAGE))
        forecaster.observe(Observation(at, at + 60.0, 2.0 * seconds), Source("", STAGE))
        forecaster.observe(Observation(at, at + 60.0, 2.0 * seconds))
    now = datetime.fromtimestamp(21 * HOUR_SECONDS, UTC)
    forecaster.learn_until(now.timestamp())
    return forecaster, now


@pytest.mark.parametrize(
    ("method", "predictor"),
    [
        ("lrp", f"probe/{STAGE}"),
        ("tsp_lrp_last_10", f"probe/{STAGE}"),
        ("matching", f"probe/{STAGE}"),
        ("stagewise", "probe"),
        ("last_value", ""),
    ],
)
def test_the_forecast_of_a_named_method_names_its_predictor(method: str, predictor: str) -> None:
    forecaster, now = trained_forecaster(method)
    assert compute(forecaster, "seconds", now, method=method).predictor == predictor


def test_the_forecast_of_a_part_of_the_default_method_names_its_predictor() -> None:
    forecaster, now = trained_forecaster("auto")
    assert compute(forecaster, "seconds", now, method="lrp_robust").predictor == f"probe/{STAGE}"
    assert compute(forecaster, "seconds", now, method="nws").predictor == ""
