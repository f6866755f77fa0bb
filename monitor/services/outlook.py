"""What is said of a series' next run: the newest forecast with its record, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.models import Forecast, Metric
from monitor.services.forecast import LEVEL, METHOD, track_record

if TYPE_CHECKING:
    from forecasting.metrics import TrackRecord
    from monitor.models import Series

TOTAL = "total.seconds"


@dataclass(frozen=True)
class Outlook:
    """*forecast* is of the total, in seconds; without one, *abstained* says why."""

    forecast: Forecast | None
    record: TrackRecord | None
    abstained: str = ""


def outlook(series: Series) -> Outlook:
    """The newest forecast of *series* that was issued; none is made by looking."""
    metric = Metric.objects.filter(series=series, name=TOTAL).first()
    if metric is None:
        return Outlook(None, None, abstained="No run has passed yet: there is nothing to forecast from.")
    newest = metric.forecasts.filter(method=METHOD, level=LEVEL).order_by("-last_time").first()
    if newest is None:
        return Outlook(None, None, abstained=_too_few(metric))
    record = track_record(metric, method=METHOD, level=LEVEL)
    return Outlook(newest, record)


def _too_few(metric: Metric) -> str:
    passed = metric.samples.filter(passed=True).count()
    runs = "1 run has" if passed == 1 else f"{passed} runs have"
    return f"{runs} passed so far: too few to forecast from, or the first forecast is still being made."
