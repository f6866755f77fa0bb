"""What is said of a series' next run: the newest forecast with its record, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.models import Forecast
from monitor.services.forecast import METHOD, track_record

if TYPE_CHECKING:
    from forecasting.metrics import TrackRecord
    from monitor.services.segments import Standing

TOTAL = "total.seconds"
_NOTHING = "there is nothing to forecast from."
_TOO_FEW = "too few to forecast from, or the first forecast is still being made."


@dataclass(frozen=True)
class Outlook:
    """*forecast* is of the total, in seconds; without one, *abstained* says why."""

    forecast: Forecast | None
    record: TrackRecord | None
    abstained: str = ""


def outlook(standing: Standing) -> Outlook:
    """The newest forecast that was issued of the current segment; none is made by looking."""
    metric = standing.current.metrics.filter(name=TOTAL).first() if standing.current else None
    if metric is None:
        return Outlook(None, None, abstained=f"{_sentence(standing.said(0))}: {_NOTHING}")
    newest = metric.forecasts.filter(method=METHOD, at=None).order_by("-last_time").first()
    if newest is None:
        passed = _sentence(standing.said(metric.samples.filter(passed=True).count()))
        return Outlook(None, None, abstained=f"{passed}: {_TOO_FEW}")
    record = track_record(metric)
    return Outlook(newest, record)


def _sentence(said: str) -> str:
    return said[0].upper() + said[1:]
