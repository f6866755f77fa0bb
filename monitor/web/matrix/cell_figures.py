"""Ages, durations and forecasts of the cells that a page of the overview shows.

Only the series of these cells are read, from stored summaries: three statements, whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db.timestamps import moment
from monitor.models import Series
from monitor.web.status import column_arrays, latest
from monitor.web.status.column_arrays import NEVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_FORECASTS = 1500  # that are read for a page: of each cell those of the newest results
_FOREVER = int(np.iinfo(np.int64).max)
# The metric of the stored row may lag a change of the segment by a moment, as the forecast does.
_DEVIATIONS = """
FROM monitor_latestrun AS latest
JOIN monitor_forecaststate AS state ON state.metric_id = latest.metric
WHERE latest.series_id = ANY (%b::bigint[]) AND state.last_value IS NOT NULL AND state.median > 0
"""
_COLUMNS = {
    "series": ("integer", "latest.series_id"),
    "deviation": ("real", "state.last_value / state.median - 1"),
}


@dataclass(frozen=True)
class SingleSeries:
    """The only series of a cell; *means* as in ``Latest.means``."""

    name: str
    means: Sequence[float]


@dataclass(frozen=True)
class CellFigures:
    """Figures of the series of a cell.

    Attributes:
        oldest: when the newest run of the series ended whose newest run is the oldest; None without runs.
        deviation: the median of the newest totals relative to the forecast of the next, minus 1; None without
            a forecast.
        forecast_count: the number of totals in this median.
        single: the series, if it is the only one.
    """

    oldest: datetime | None
    deviation: float | None
    forecast_count: int
    single: SingleSeries | None = None


def cell_figures(
    series: NDArray[np.int64], ended_at: NDArray[np.int64], cell: NDArray[np.int64], now: datetime
) -> dict[int, CellFigures]:
    """Return the figures of each cell, by its number.

    A row is a series (primary key), when its last run ended, in microseconds since 1970, and the number of
    its *cell*.
    """
    if not len(cell):
        return {}
    deviation = _deviations(series, _newest(ended_at, cell))
    order = np.lexsort([deviation, cell])  # in each cell, series without a forecast come last
    cells, starts, counts = np.unique(cell[order], return_index=True, return_counts=True)
    oldest = np.minimum.reduceat(np.where(ended_at == NEVER, _FOREVER, ended_at)[order], starts)
    known = np.add.reduceat(~np.isnan(deviation[order]), starts, dtype=np.int64)
    median = _medians(deviation[order], starts, known)
    single_keys = np.where(counts == 1, series[order][starts], 0)
    singles = _singles(single_keys[counts == 1].tolist(), now)
    return {
        number: CellFigures(
            None if end == _FOREVER else moment(end), middle if n else None, n, singles.get(key)
        )
        for number, end, middle, n, key in zip(
            cells.tolist(),
            oldest.tolist(),
            median.tolist(),
            known.tolist(),
            single_keys.tolist(),
            strict=True,
        )
    }


def _newest(ended_at: NDArray[np.int64], cell: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are among the newest of their *cell*, about ``MOST_FORECASTS`` in all cells."""
    if len(cell) <= MOST_FORECASTS:
        return np.ones(len(cell), dtype=bool)
    order = np.lexsort([-ended_at, cell])
    _, starts, counts = np.unique(cell[order], return_index=True, return_counts=True)
    rank = np.arange(len(cell)) - np.repeat(starts, counts)
    is_newest = np.zeros(len(cell), dtype=bool)
    is_newest[order] = rank < max(1, MOST_FORECASTS // len(starts))
    return is_newest


def _deviations(keys: NDArray[np.int64], is_read: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the deviation of each of the series *keys*; NaN without a forecast, or if it is not read."""
    rows = column_arrays.read(_COLUMNS, _DEVIATIONS, [np.unique(keys[is_read])])
    deviation = latest.take(rows["deviation"], latest.positions_of(keys, rows["series"]), np.nan)
    return np.where(is_read, deviation, np.nan)


def _medians(
    values: NDArray[np.float64], starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the median of *counts* sorted *values* from each of *starts* on; of none, any number."""
    lower = values[starts + np.maximum(counts - 1, 0) // 2]
    upper = values[np.minimum(starts + counts // 2, len(values) - 1)]
    middle: NDArray[np.float64] = (lower + upper) / 2
    return middle


def _singles(keys: Sequence[int], now: datetime) -> dict[int, SingleSeries]:
    if not keys:
        return {}
    rows = latest.latest(Series.objects.filter(pk__in=keys), now)
    named = zip(rows.series.tolist(), rows.name.tolist(), rows.means.tolist(), strict=True)
    return {key: SingleSeries(name, tuple(means)) for key, name, means in named}
