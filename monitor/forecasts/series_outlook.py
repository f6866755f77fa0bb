"""What is said of a series' next run: the newest forecast with its record, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from monitor.forecasts.defaults import METHOD
from monitor.forecasts.quantiles import quantile
from monitor.forecasts.score import ForecastRecord
from monitor.models import Forecast, ForecastState, SuccessState

if TYPE_CHECKING:
    from monitor.models import Metric
    from monitor.series.segments import SegmentStatus

TOTAL = "total.seconds"
_NOTHING = "there is nothing to forecast from."
_TOO_FEW = "too few to forecast from, or the first forecast is still being made."


@dataclass(frozen=True)
class Outlook:
    """*forecast* is of the total, in seconds; without one, *abstained* says why. *success* is how likely the
    run passes, if that is known."""

    forecast: Forecast | None
    record: ForecastRecord
    abstained: str = ""
    success: SuccessState | None = None

    @property
    def at_most(self) -> float | None:
        """What nine of ten runs that pass do not exceed."""
        quantiles = self.forecast.quantiles if self.forecast else None
        return quantile(quantiles, 0.9) if quantiles else None

    @property
    def better_by(self) -> float | None:
        """How much less off than the last value; negative where that was better."""
        scaled = self.record.mean_absolute_scaled_error
        return None if scaled is None else 1.0 - scaled

    @property
    def coverage(self) -> float | None:
        """The share of truths in the interval that is shown."""
        return self.record.coverage(self.forecast.level) if self.forecast else None


def outlook(standing: SegmentStatus) -> Outlook:
    """The newest forecast that was issued of the current segment; none is made by looking."""
    metric = standing.current.metrics.filter(name=TOTAL).first() if standing.current else None
    if metric is None:
        return Outlook(None, ForecastRecord(), abstained=f"{_sentence(standing.passed_text(0))}: {_NOTHING}")
    newest = metric.forecasts.filter(method=METHOD, at=None).order_by("-last_known_at", "-pk").first()
    if newest is None:
        passed = _sentence(standing.passed_text(metric.samples.filter(passed=True).count()))
        return Outlook(None, ForecastRecord(), abstained=f"{passed}: {_TOO_FEW}")
    success = SuccessState.objects.filter(series=metric.segment.series_id, probability__isnull=False)
    return Outlook(newest, _record(metric), success=success.first())


def _record(metric: Metric) -> ForecastRecord:
    """Return the record that the API serves as well."""
    names = [field.name for field in fields(ForecastRecord)]
    row = ForecastState.objects.filter(metric=metric).values(*names).first()
    return ForecastRecord(**row) if row else ForecastRecord()


def _sentence(said: str) -> str:
    return said[0].upper() + said[1:]
