"""The models, one noun per file, with its QuerySet."""

from monitor.models.account_mail import AccountMail
from monitor.models.alert import Alert, AlertRule, Notification, Recheck
from monitor.models.attribution import AttributedRun, Attribution
from monitor.models.audit_event import AuditEvent
from monitor.models.availability_profile import AvailabilityProfile, ProfileVersion
from monitor.models.binding import Binding
from monitor.models.chain import Chain, ChainRecord, ConflictCount, ConflictingReport
from monitor.models.correction import Correction
from monitor.models.current_segment import CurrentSegment
from monitor.models.day_score import DayScore
from monitor.models.demo_weather import DemoWeather
from monitor.models.deployment import Deployment
from monitor.models.door_opening import DoorOpening
from monitor.models.ended_sessions import EndedSessions
from monitor.models.failure_signature import FailureSignature, JudgedHistory
from monitor.models.forecast import Forecast, ForecastDelivery
from monitor.models.forecast_state import (
    ForecastPredictor,
    ForecastState,
    PendingChange,
    SuccessState,
)
from monitor.models.heartbeat import Heartbeat
from monitor.models.hold import Hold
from monitor.models.identity import Identity
from monitor.models.incident import Incident, IncidentEvent, IncidentSeries
from monitor.models.latest_run import LatestRun
from monitor.models.maintenance_change import MaintenanceChange
from monitor.models.maintenance_window import MaintenanceWindow
from monitor.models.metric import Metric, Sample
from monitor.models.outcome import Outcome
from monitor.models.outcome_counts import (
    DirtyOutcome,
    FailureHour,
    OutcomeBlock,
    OutcomeDay,
    OutcomeProgress,
)
from monitor.models.own_signature import OwnSignature, SignatureChange
from monitor.models.passkey import PasskeyChallenge, PasskeyHandle
from monitor.models.ping import PingKey, ReportedStart
from monitor.models.provider_logout import ProviderLogout
from monitor.models.provider_metadata import ProviderMetadata
from monitor.models.recomputation import Recomputation, RecomputedPeriod
from monitor.models.report import RawReport
from monitor.models.reporter import (
    EnrolmentAttempt,
    EnrolmentCode,
    Reporter,
    ReporterAssignment,
    ReporterKey,
    ReporterStatus,
)
from monitor.models.retention_cutoff import RetentionCutoff
from monitor.models.role import UserRole
from monitor.models.rollup import DayRollup, DirtyHour, HourRollup
from monitor.models.run import Run, Transition
from monitor.models.run_feed import EndedRun, RunSubscriber
from monitor.models.second_factor_term import SecondFactorTerm
from monitor.models.segment import Segment
from monitor.models.series import FormerReporter, Series
from monitor.models.series_deletion import SeriesDeletion
from monitor.models.series_standing import OutcomeCount, SeriesStanding, StandingChange, StandingCount
from monitor.models.site import Resource, Site, SiteAdministrator
from monitor.models.site_availability import DirtyDay, SiteDay, SiteMonth
from monitor.models.storage_verdict import StorageVerdict
from monitor.models.suite import Suite
from monitor.models.token import ApiToken
from monitor.models.usage import Usage
from monitor.models.webhook import AnnouncedSite, Webhook, WebhookDelivery, WebhookReceiver

__all__ = [
    "AccountMail",
    "Alert",
    "AlertRule",
    "AnnouncedSite",
    "ApiToken",
    "AttributedRun",
    "Attribution",
    "AuditEvent",
    "AvailabilityProfile",
    "Binding",
    "Chain",
    "ChainRecord",
    "ConflictCount",
    "ConflictingReport",
    "Correction",
    "CurrentSegment",
    "DayRollup",
    "DayScore",
    "DemoWeather",
    "Deployment",
    "DirtyDay",
    "DirtyHour",
    "DirtyOutcome",
    "DoorOpening",
    "EndedRun",
    "EndedSessions",
    "EnrolmentAttempt",
    "EnrolmentCode",
    "FailureHour",
    "FailureSignature",
    "Forecast",
    "ForecastDelivery",
    "ForecastPredictor",
    "ForecastState",
    "FormerReporter",
    "Heartbeat",
    "Hold",
    "HourRollup",
    "Identity",
    "Incident",
    "IncidentEvent",
    "IncidentSeries",
    "JudgedHistory",
    "LatestRun",
    "MaintenanceChange",
    "MaintenanceWindow",
    "Metric",
    "Notification",
    "Outcome",
    "OutcomeBlock",
    "OutcomeCount",
    "OutcomeDay",
    "OutcomeProgress",
    "OwnSignature",
    "PasskeyChallenge",
    "PasskeyHandle",
    "PendingChange",
    "PingKey",
    "ProfileVersion",
    "ProviderLogout",
    "ProviderMetadata",
    "RawReport",
    "Recheck",
    "Recomputation",
    "RecomputedPeriod",
    "ReportedStart",
    "Reporter",
    "ReporterAssignment",
    "ReporterKey",
    "ReporterStatus",
    "Resource",
    "RetentionCutoff",
    "Run",
    "RunSubscriber",
    "Sample",
    "SecondFactorTerm",
    "Segment",
    "Series",
    "SeriesDeletion",
    "SeriesStanding",
    "SignatureChange",
    "Site",
    "SiteAdministrator",
    "SiteDay",
    "SiteMonth",
    "StandingChange",
    "StandingCount",
    "StorageVerdict",
    "SuccessState",
    "Suite",
    "Transition",
    "Usage",
    "UserRole",
    "Webhook",
    "WebhookDelivery",
    "WebhookReceiver",
]
