"""The next run on the page of a series: its forecast, or the reason why it has no forecast."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from monitor.analysis.forecasts.basis import ForecastBasis
from monitor.analysis.forecasts.defaults import ELSEWHERE, HEADLINE
from monitor.analysis.forecasts.quantiles import quantile
from monitor.analysis.forecasts.score import ForecastRecord
from monitor.models import Forecast, ForecastState, SuccessState

if TYPE_CHECKING:
    from monitor.depot.series.segments import SegmentStatus

_NOTHING = "there is nothing to forecast from."
_TOO_FEW = "too few to forecast from."
_PENDING = "the first forecast is being computed."


@dataclass(frozen=True)
class NextRunOutlook:
    """The forecast of the total of the next run, as the page of a series shows it.

    Attributes:
        forecast: the forecast, in seconds; None if there is none.
        record: the scores of earlier forecasts.
        abstained: why there is no forecast.
        success: the state with the probability that the run passes; None if the probability is unknown.
    """

    forecast: Forecast | None = None
    record: ForecastRecord = field(default_factory=ForecastRecord)
    abstained: str = ""
    success: SuccessState | None = None

    @property
    def at_most(self) -> float | None:
        """Return the 90 % quantile, in seconds, of the forecast total of a run that passes."""
        quantiles = self.forecast.quantiles if self.forecast else None
        return quantile(quantiles, 0.9) if quantiles else None

    @property
    def better_by(self) -> float | None:
        """Return by what share the error is less than the baseline's; negative if the error is larger."""
        scaled = self.record.mean_absolute_scaled_error
        return None if scaled is None else 1.0 - scaled

    @property
    def basis(self) -> ForecastBasis | None:
        """Return what a forecast from elsewhere is based on; None for other forecasts."""
        document = self.forecast.basis if self.forecast else None
        return ForecastBasis.of(document) if document else None

    @property
    def coverage(self) -> float | None:
        """Return the share of earlier actual values inside the interval of the forecast's level."""
        return self.record.coverage(self.forecast.level) if self.forecast else None


def outlook(status: SegmentStatus) -> NextRunOutlook:
    """Return the outlook of a series with *status* from its stored forecast, without computing a forecast.

    Without enough runs, it is the newest forecast from elsewhere, if one was issued.
    """
    metric = status.current.metrics.filter(name=HEADLINE).first() if status.current else None
    if metric is None:
        return NextRunOutlook(abstained=f"{_sentence(status.passed_text(0))}: {_NOTHING}")
    state = ForecastState.objects.filter(metric=metric).select_related("forecast").first()
    if state is None or state.forecast is None:
        if elsewhere := Forecast.objects.filter(metric=metric, method=ELSEWHERE, truth=None).first():
            return NextRunOutlook(elsewhere)
        passed = metric.samples.filter(passed=True).count()
        is_complete = state is not None and not state.is_behind and state.n >= passed
        reason = _TOO_FEW if is_complete else _PENDING
        return NextRunOutlook(abstained=f"{_sentence(status.passed_text(passed))}: {reason}")
    record = ForecastRecord(**{column.name: getattr(state, column.name) for column in fields(ForecastRecord)})
    success = SuccessState.objects.filter(series=metric.segment.series_id, probability__isnull=False)
    return NextRunOutlook(state.forecast, record, success=success.first())


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
