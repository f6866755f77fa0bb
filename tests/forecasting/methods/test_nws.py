from __future__ import annotations

import csv
import gzip
import random
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from forecasting.base import Abstained
from forecasting.methods.nws import PRIMARIES, Method, Pick

GOLDEN = Path(__file__).parents[4] / "shared" / "data" / "nws-golden" / "nws-2.0.5-oracle.csv.gz"
ERROR_WINDOWS = (1, 5, 10, 20, 30, 50, 100)


def trained(values: Sequence[float], *, exact: bool = False) -> Method:
    method = Method(exact=exact)
    for time_seconds, value in enumerate(values):
        method.update(time_seconds, value)
    return method


def primary(method: Method, name: str) -> float:
    return method.primaries()[PRIMARIES.index(name)]


@pytest.mark.skipif(not GOLDEN.exists(), reason="the answers of the original program are not on this machine")
def test_exact_answers_are_those_of_the_original_on_every_step_of_eight_series() -> None:
    case, method, steps = "", Method(exact=True), 0
    with gzip.open(GOLDEN, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["case"] != case:
                case, method = row["case"], Method(exact=True)
            method.update(float(row["time"]), float(row["value"]))
            assert method.primaries() == pytest.approx(
                [float(row[f"p{index:02}"]) for index in range(18)], rel=1e-12, abs=0.0
            ), (case, row["step"])
            for loss in ("mae", "mse"):
                pick = method.pick(loss)
                expected = float(row[f"{loss}_forecast"]), float(row[f"{loss}_error"])
                assert (pick.forecast, pick.error) == pytest.approx(expected, rel=1e-12, abs=0.0), (
                    case,
                    row["step"],
                )
                assert pick.primary == int(row[f"{loss}_method"]), (case, row["step"])
            steps += 1
    assert steps == 3011


def test_there_are_eighteen_primaries_in_the_order_of_the_original() -> None:
    assert len(PRIMARIES) == len(trained([1.0]).primaries()) == 18
    assert PRIMARIES[0:3] == ("last value", "running mean", "5% smoothing")
    assert PRIMARIES[10:12] == ("median of 31", "median of 5")


def test_before_there_are_data_there_is_no_pick() -> None:
    assert not Method().primaries()
    with pytest.raises(Abstained):
        Method().pick("mae")


# Worked out by hand for 4, 8, 6. As in the original, only the smoothers are scored at the first value
# (their forecast was 0), so they win; then all err by 4, and the first wins; then the running mean is right.
@pytest.mark.parametrize(
    ("values", "mae", "mse"),
    [
        ([4.0], Pick(4.0, 4.0, 2), Pick(4.0, 0.0, 2)),
        ([4.0, 8.0], Pick(8.0, 4.0, 0), Pick(8.0, 16.0, 0)),
        ([4.0, 8.0, 6.0], Pick(6.0, 10.0 / 3.0, 1), Pick(6.0, 10.0, 1)),
    ],
)
def test_the_first_exact_picks(values: list[float], mae: Pick, mse: Pick) -> None:
    method = trained(values, exact=True)
    assert (method.pick("mae"), method.pick("mse")) == (mae, mse)


@pytest.mark.parametrize(
    ("values", "mae", "mse"),
    [
        ([4.0], Pick(4.0, 0.0, 0), Pick(4.0, 0.0, 0)),
        ([4.0, 8.0], Pick(8.0, 4.0, 0), Pick(8.0, 16.0, 0)),
        ([4.0, 8.0, 6.0], Pick(6.0, 3.0, 1), Pick(6.0, 10.0, 1)),
    ],
)
def test_the_first_clean_picks_score_nothing_before_there_are_data(
    values: list[float], mae: Pick, mse: Pick
) -> None:
    method = trained(values)
    assert (method.pick("mae"), method.pick("mse")) == (mae, mse)


def test_the_forecast_is_the_mae_pick() -> None:
    method = trained([4.0, 8.0, 6.0])
    forecast = method.forecast(10.0)
    assert (forecast.mean, forecast.n, forecast.age_seconds) == (method.pick("mae").forecast, 3, 8.0)


def test_the_primaries_of_two_values() -> None:
    smoothed = [4.2, 4.4, 4.6, 4.8, 5.2, 5.6, 6.0, 7.0]
    assert trained([4.0, 8.0]).primaries() == pytest.approx([8.0, 6.0, *smoothed] + [6.0] * 8)


def test_the_primaries_of_ten_values_and_an_outlier() -> None:
    method = trained([1000.0, *map(float, range(1, 10))])
    assert primary(method, "last value") == 9.0
    assert primary(method, "running mean") == 104.5
    assert primary(method, "median of 31") == 5.5
    assert primary(method, "median of 5") == 7.0
    assert primary(method, "mean of 31") == 104.5
    assert primary(method, "mean of 5") == 7.0
    assert primary(method, "30% trimmed mean of 31") == 5.5  # of 4, 5, 6, 7: int(0.3 * 10) go at each end
    assert primary(method, "30% trimmed mean of 51") == 5.5
    assert primary(method, "adaptive median of 5 to 21") == 5.5


def test_long_exact_runs_equal_the_answers_of_the_version_that_passed_all_golden_tests() -> None:
    method, state, answers = Method(exact=True), 1, {}
    for step in range(1, 301):
        state = (state * 1103515245 + 12345) % 2**31
        shift = 40.0 * ((step - 1) // 80 % 2)
        method.update(step, (state >> 20) / 64 + shift + (state >> 16) % 7)
        answers[step] = method.pick("mae"), method.pick("mse")
    for step, forecast, mae_error, mse_error, chosen in [
        (100, 70.890625, 8.810921364319137, 140.47669106820356, 11),
        (150, 58.640625, 8.979115516567688, 133.23747033907404, 17),
        (200, 12.522544745056218, 9.102866485520668, 144.4483154242908, 7),
        (250, 52.09375, 9.04569921764822, 142.08813170102556, 0),
        (300, 46.9143322336425, 9.059201275705686, 137.22608345267707, 9),
    ]:
        assert answers[step] == (Pick(forecast, mae_error, chosen), Pick(forecast, mse_error, chosen))


def test_windows_forget() -> None:
    method = trained([*[1000.0] * 60, *[1.0] * 20, *[2.0] * 31])
    assert primary(method, "mean of 31") == 2.0
    assert primary(method, "median of 31") == 2.0
    assert primary(method, "30% trimmed mean of 51") == pytest.approx(37.0 / 21.0)  # 5 ones and 16 twos stay
    assert primary(method, "running mean") > 500.0


def test_a_clean_adaptive_median_tries_its_neighbours_and_the_original_its_step() -> None:
    rising = [float(value) for value in range(1, 22)]
    # The window is 10: median 16.5. Of 9: 17, nearer to 21. The original tries 1, finds the smallest, stays.
    assert primary(trained(rising), "adaptive median of 5 to 21") == 17.0
    assert primary(trained(rising, exact=True), "adaptive median of 5 to 21") == 16.5


def test_an_adaptive_median_that_sees_no_difference_keeps_its_window() -> None:
    # The median of the last 10 or 9 is 9 as soon as half of them are; that of 21 would still be 1.
    assert primary(trained([*[1.0] * 40, *[9.0] * 5]), "adaptive median of 5 to 21") == 9.0


def test_a_clean_adaptive_median_stays_within_its_limits() -> None:
    rising = trained([float(value) for value in range(200)])
    assert primary(rising, "adaptive median of 5 to 21") == 197.0  # of the last 5
    assert primary(rising, "adaptive median of 21 to 51") == 189.0  # of the last 21


def test_the_exact_wide_adaptive_median_drifts_to_the_widest_window() -> None:
    # On a rising line the median of the last 5, which it takes for both neighbours, is nearer to the newest
    # value than its own, so the window of 30 grows by one a step, while a sound one shrinks.
    rising = [float(value) for value in range(51 + 10)]
    assert (
        primary(trained(rising, exact=True), "adaptive median of 21 to 51") == 60.0 - 20.0
    )  # of the last 41
    assert primary(trained(rising), "adaptive median of 21 to 51") == 60.0 - 10.0  # of the last 21


def test_clean_choices_follow_their_definition_on_a_noisy_series() -> None:
    draw = random.Random(11)
    values = [draw.lognormvariate(3.0, 0.4) + 20.0 * (index // 90 % 2) for index in range(330)]
    method, reference = Method(), _Reference()
    for time_seconds, value in enumerate(values):
        reference.score(value)
        method.update(time_seconds, value)
        expected = reference.choose(list(method.primaries()))
        # Compare forecasts: primaries that agree but for rounding may replace each other.
        forecasts = method.pick("mse").forecast, method.pick("mae").forecast
        assert forecasts == pytest.approx(expected, rel=1e-9), time_seconds


class _Reference:
    """The choice as it is described, from all errors so far; slow."""

    def __init__(self) -> None:
        self.forecasts: list[float] = []
        self.selected: list[int] = []
        self.errors: list[list[float]] = [[] for _ in PRIMARIES]
        self.selector_errors: list[list[float]] = [[] for _ in range(16)]

    def score(self, value: float) -> None:
        if not self.forecasts:
            return
        for errors, forecast in zip(self.errors, self.forecasts, strict=True):
            errors.append(abs(forecast - value))
        for errors, choice in zip(self.selector_errors, self.selected, strict=True):
            errors.append(abs(self.forecasts[choice] - value))

    def choose(self, forecasts: list[float]) -> tuple[float, float]:
        self.forecasts = forecasts
        reaches = [0, *ERROR_WINDOWS]
        squared = [_least(self.errors, 2, reach) for reach in reaches]
        absolute = [_least(self.errors, 1, reach) for reach in reaches]
        self.selected = [squared[0], absolute[0], *squared[1:], *absolute[1:]]
        mse, mae = (forecasts[self.selected[_least(self.selector_errors, power, 0)]] for power in (2, 1))
        return mse, mae


def _least(errors: list[list[float]], power: int, reach: int) -> int:
    means = [statistics.fmean([error**power for error in row[-reach:]] or [0.0]) for row in errors]
    return min(range(len(means)), key=lambda index: round(means[index], 9))
