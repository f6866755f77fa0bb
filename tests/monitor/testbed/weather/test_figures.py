"""Quantile functions have the published figures that they were solved for."""

import numpy as np
import pytest

from monitor.testbed.weather import profiles
from monitor.testbed.weather.figures import (
    QUANTILES,
    Figures,
    ImpossibleFigures,
    QuietFigures,
    RuntimeFigures,
    quantiles,
)

SHIPPED = [
    pytest.param(figures, id=f"{name}-{probe}-{stage}")
    for name in profiles.names()
    for probe in ("gather", "preco")
    for stage, figures in getattr(profiles.load(name), probe).items()
]


@pytest.mark.parametrize("figures", SHIPPED)
def test_the_runtimes_of_every_shipped_stage_have_the_published_figures(figures: Figures) -> None:
    runtimes = quantiles(figures)
    assert len(runtimes) == QUANTILES
    assert runtimes.mean() == pytest.approx(figures.mean, rel=1e-6)
    assert runtimes.std() == pytest.approx(figures.stdev, rel=1e-6)
    if isinstance(figures, RuntimeFigures):
        assert (runtimes[0], runtimes[-1]) == pytest.approx((figures.low, figures.high))
    assert np.all(np.diff(runtimes) >= 0)
    assert runtimes[0] > 0


def test_a_quiet_runtime_has_a_core_that_varies_as_asked_and_few_outliers_beyond_it() -> None:
    runtimes = quantiles(QuietFigures(mean=17.42, stdev=5.82, core_cv=0.03, outlier_share=0.04))
    core = runtimes[: -round(0.04 * QUANTILES)]
    assert core.std() / core.mean() == pytest.approx(0.03, rel=0.01)
    assert core[-1] < 1.2 * core.mean()
    assert runtimes[-1] > 5 * core.mean()


@pytest.mark.parametrize(
    "figures",
    [
        pytest.param(RuntimeFigures(9.0, 10.0, 20.0, 1.0), id="mean below minimum"),
        pytest.param(RuntimeFigures(21.0, 10.0, 20.0, 1.0), id="mean above maximum"),
        pytest.param(RuntimeFigures(15.0, 10.0, 20.0, 6.0), id="deviation larger than the range allows"),
        pytest.param(RuntimeFigures(15.0, 10.0, 20.0, 0.0), id="no deviation between two extremes"),
        pytest.param(RuntimeFigures(15.0, 20.0, 10.0, 1.0), id="extremes swapped"),
        pytest.param(QuietFigures(15.0, 1.0, 0.5, 0.05), id="the core deviates more than all runs"),
        pytest.param(QuietFigures(15.0, 5.0, 0.1, 0.00001), id="no outlier"),
        pytest.param(QuietFigures(15.0, 5.0, 0.1, 1.0), id="no core"),
        pytest.param(QuietFigures(0.0, 5.0, 0.1, 0.1), id="no runtime"),
    ],
)
def test_the_error_about_impossible_figures_names_them(figures: Figures) -> None:
    with pytest.raises(ImpossibleFigures, match=f"mean={figures.mean}"):
        quantiles(figures)
