from __future__ import annotations

import math

import pytest

from forecasting.elsewhere.abstained import NoPrediction
from forecasting.elsewhere.fidelity import fidelity, require_faithful
from forecasting.elsewhere.runs import SystemRuns, scatter
from tests.forecasting.elsewhere.systems import runs


def replayed(*ratios: float) -> SystemRuns:
    """Return runs that take these times of their replays."""
    return SystemRuns(
        "disk", runs(*((ratio, ratio) for ratio in ratios)), runs(*((1.0, 1.0) for _ in ratios))
    )


def test_fidelity_is_the_median_ratio_and_the_scatter_of_its_logarithm() -> None:
    known = fidelity(replayed(1.0, 1.1, 1.21).pairs)
    assert known is not None
    assert known.n == 3
    assert known.ratio == pytest.approx(1.1)
    assert known.scatter == pytest.approx(math.log(1.1))
    assert fidelity([]) is None


def test_one_disturbed_run_of_many_does_not_make_a_replay_unfaithful() -> None:
    require_faithful([replayed(1.0, 1.05, 0.95, 1.02, 0.98, 30.0)])
    assert scatter([0.0]) is None


@pytest.mark.parametrize("ratio", [0.81, 1.0, 1.24])
def test_replays_that_take_about_as_long_are_faithful(ratio: float) -> None:
    require_faithful([replayed(ratio, ratio)])


@pytest.mark.parametrize("ratio", [0.79, 1.26, 4.0])
def test_replays_that_take_another_time_are_refused(ratio: float) -> None:
    with pytest.raises(NoPrediction, match=f"on disk the application takes {ratio:.2f} times") as refused:
        require_faithful([replayed(1.0, 1.0), replayed(ratio, ratio)])
    assert refused.value.code == "unfaithful"


def test_replays_that_scatter_are_refused() -> None:
    require_faithful([replayed(0.9, 1.15)])
    with pytest.raises(NoPrediction, match=r"scatters by 0\.29") as refused:
        require_faithful([replayed(0.8, 1.2)])
    assert refused.value.code == "unfaithful"
