"""One noun per file, its QuerySet beside it."""

from monitor.models.alert import Alert, AlertRule, Notification, Recheck
from monitor.models.blackout import Blackout
from monitor.models.correction import Correction
from monitor.models.current_segment import Current
from monitor.models.day_score import DayScore
from monitor.models.forecast import Forecast, ForecastGiven
from monitor.models.forecast_state import (
    ForecastMark,
    ForecastNews,
    ForecastPredictor,
    ForecastState,
    SuccessState,
)
from monitor.models.heartbeat import Component
from monitor.models.hold import Hold
from monitor.models.latest_run import Latest
from monitor.models.metric import Metric, Sample
from monitor.models.outcome import Outcome
from monitor.models.report import RawReport
from monitor.models.reporter import Reporter
from monitor.models.retention_cutoff import Horizon
from monitor.models.rollup import DayRollup, HourRollup, StaleHour
from monitor.models.run import Run, Transition
from monitor.models.segment import Segment
from monitor.models.series import Binding, Series, Suite
from monitor.models.site import Resource, Site
from monitor.models.token import ApiToken
from monitor.models.usage import Usage

__all__ = [
    "Alert",
    "AlertRule",
    "ApiToken",
    "Binding",
    "Blackout",
    "Component",
    "Correction",
    "Current",
    "DayRollup",
    "DayScore",
    "Forecast",
    "ForecastGiven",
    "ForecastMark",
    "ForecastNews",
    "ForecastPredictor",
    "ForecastState",
    "Hold",
    "Horizon",
    "HourRollup",
    "Latest",
    "Metric",
    "Notification",
    "Outcome",
    "RawReport",
    "Recheck",
    "Reporter",
    "Resource",
    "Run",
    "Sample",
    "Segment",
    "Series",
    "Site",
    "StaleHour",
    "SuccessState",
    "Suite",
    "Transition",
    "Usage",
]
