"""Forecasters are asked, and their answers say what they were made from."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forecasting.base import Source
from forecasting.series import Forecaster, Observation
from monitor.forecasts.answer import compute

STAGE = "stage.compute.seconds"
HOUR_SECONDS = 3600.0


def told(method: str) -> tuple[Forecaster, datetime]:
    """Of a total that is twice what a probe's stage showed half an hour before; and now."""
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
def test_a_method_asked_for_by_name_says_what_it_was_made_from(method: str, predictor: str) -> None:
    forecaster, now = told(method)
    assert compute(forecaster, "seconds", now, method=method).predictor == predictor


def test_a_part_of_the_usual_method_says_what_it_was_made_from_too() -> None:
    forecaster, now = told("auto")
    assert compute(forecaster, "seconds", now, method="lrp_robust").predictor == f"probe/{STAGE}"
    assert compute(forecaster, "seconds", now, method="nws").predictor == ""
