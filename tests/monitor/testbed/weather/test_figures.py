"""Quantile functions have the published figures that they were solved for."""

import numpy as np
import pytest

from monitor.testbed.weather import profiles
from monitor.testbed.weather.figures import QUANTILES, ImpossibleFigures, RuntimeFigures, quantiles

SHIPPED = [
    pytest.param(figures, id=f"{name}-{probe}-{stage}")
    for name in profiles.names()
    for probe in ("gather", "preco")
    for stage, figures in getattr(profiles.load(name), probe).items()
]


@pytest.mark.parametrize("figures", SHIPPED)
def test_the_runtimes_of_every_shipped_stage_have_the_published_figures(figures: RuntimeFigures) -> None:
    runtimes = quantiles(figures)
    assert len(runtimes) == QUANTILES
    assert runtimes.mean() == pytest.approx(figures.mean, rel=1e-6)
    assert runtimes.std() == pytest.approx(figures.stdev, rel=1e-6)
    assert (runtimes[0], runtimes[-1]) == pytest.approx((figures.low, figures.high))
    assert np.all(np.diff(runtimes) >= 0)


@pytest.mark.parametrize(
    "figures",
    [
        pytest.param(RuntimeFigures(9.0, 10.0, 20.0, 1.0), id="mean below minimum"),
        pytest.param(RuntimeFigures(21.0, 10.0, 20.0, 1.0), id="mean above maximum"),
        pytest.param(RuntimeFigures(15.0, 10.0, 20.0, 6.0), id="deviation larger than the range allows"),
        pytest.param(RuntimeFigures(15.0, 10.0, 20.0, 0.0), id="no deviation between two extremes"),
        pytest.param(RuntimeFigures(15.0, 20.0, 10.0, 1.0), id="extremes swapped"),
    ],
)
def test_the_error_about_impossible_figures_names_them(figures: RuntimeFigures) -> None:
    with pytest.raises(ImpossibleFigures, match=f"mean={figures.mean}"):
        quantiles(figures)
