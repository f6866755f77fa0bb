"""The published table of predictions of the study of two grids: PreCo on TeraGrid, forecast from Gather.

PreCo read from Purdue, computed at NCSA and wrote to SDSC. It ran on TeraGrid only. Means and standard
deviations are in seconds, errors in per cent of the actual value; the number in brackets is the coefficient
of variation of the errors, in per cent. Minima, maxima and single transfers were not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# The columns of the table, in its order.
METRICS = (
    "total.seconds",
    "total_essential.seconds",
    "total_core.seconds",
    "stage.stage_data.seconds",
    "stage.build_executable.seconds",
    "stage.compute.seconds",
    "stage.queue_wait.seconds",
)


class PublishedForecastError(NamedTuple):
    """A mean relative error and the coefficient of variation of the errors, both in per cent."""

    percent: float
    variation_percent: float

    def text(self) -> str:
        """Return both with the digits that were published, which never end with a zero."""
        return f"{self.percent} ({self.variation_percent})"


def _columns(*cells: float) -> dict[str, float]:
    return dict(zip(METRICS, cells, strict=True))


def _errors(*cells: tuple[float, float]) -> dict[str, PublishedForecastError]:
    return {metric: PublishedForecastError(*cell) for metric, cell in zip(METRICS, cells, strict=True)}


MEAN_SECONDS: Mapping[str, float] = _columns(816.61, 715.45, 608.07, 33.50, 17.42, 312.89, 107.37)
STDEV_SECONDS: Mapping[str, float] = _columns(112.52, 103.74, 72.16, 37.65, 5.82, 19.93, 77.79)
# By the name of the method in ``forecasting/methods/``. How many first pairs the fixed training set had was
# not published.
ERRORS: Mapping[str, Mapping[str, PublishedForecastError]] = {
    "nws": _errors(
        (8.57, 90.32), (8.47, 95.66), (7.92, 106.65), (29.44, 97.99), (3.84, 165.64), (4.39, 80.45),
        (29.37, 91.05),
    ),
    "lrp": _errors(
        (8.42, 90.74), (8.73, 90.71), (8.08, 110.68), (27.62, 84.5), (4.86, 136.44), (5.83, 291.95),
        (33.8, 74.25),
    ),
    "lrp_last_10": _errors(
        (9.13, 78.62), (9.35, 83.49), (9.44, 125.48), (67.89, 415.24), (6.29, 293.72), (11.95, 408.4),
        (28.31, 81.85),
    ),
    "lrp_first": _errors(
        (9.96, 90.61), (10.64, 90.24), (10.57, 92.33), (24.65, 78.9), (4.55, 140.17), (4.41, 85.34),
        (37.13, 76.33),
    ),
    "tsp_lrp": _errors(
        (8.99, 85.5), (9.1, 87.69), (8.54, 107.93), (30.92, 82.14), (4.79, 130.75), (4.41, 75.72),
        (34.05, 84.04),
    ),
    "tsp_lrp_last_10": _errors(
        (9.14, 81.84), (9.11, 87.4), (8.49, 97.04), (65.88, 227.4), (4.27, 121.68), (5.38, 105.91),
        (29.22, 83.44),
    ),
    "tsp_lrp_first": _errors(
        (10.55, 87.17), (11.11, 88.86), (11.33, 98.15), (28.43, 87.64), (4.69, 133.39), (4.55, 84.14),
        (37.84, 84.64),
    ),
}  # fmt: skip
