"""The parts of a grid as plain values; both the depot and a grid file are converted to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import Any

from monitor.analysis.webhooks.define import WebhookDefinition
from monitor.models.reporter import HOME
from reporters import config

DEFAULT_RESOURCE = config.ResourceConfig("", "", "/")


@dataclass(frozen=True)
class SiteDefinition:
    """An organisation's place on the grid."""

    name: str
    title: str = ""
    latitude: float | None = None
    longitude: float | None = None
    is_public: bool = False
    runs_at_once: int | None = None
    runs_per_day: int | None = None
    bytes_per_day: int | None = None
    cpu_hours_per_day: float | None = None
    notes: str = ""
    contacts: Sequence[Mapping[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class ResourceDefinition:
    """One reachable host of a site, and its *storage* as in a grid file, without defaults; empty: unknown."""

    name: str
    site: str
    scratch: str
    shell: Mapping[str, Any]
    transfer: Mapping[str, Any]
    batch: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULT_RESOURCE.batch))
    address: str = ""
    storage: Mapping[str, Any] = field(default_factory=dict)

    def as_config(self) -> config.ResourceConfig:
        """Return what reporters receive."""
        fields = {name: value for name, value in asdict(self).items() if name != "storage"}
        return config.ResourceConfig(**fields)


@dataclass(frozen=True)
class ReporterDefinition:
    """A process that runs series: the agent of *site*, or a Celery worker if *site* is None."""

    name: str
    site: str | None = None
    capacity: int = 4


@dataclass(frozen=True)
class SuiteDefinition:
    """A named group of series; if *viewers* names user groups, only their members see it.

    ``keep_..._days`` is the retention of reports, samples and rollups; None keeps them for ever.
    """

    name: str
    title: str = ""
    viewers: Sequence[str] = ()
    keep_reports_days: int | None = None
    keep_samples_days: int | None = None
    keep_hourly_days: int | None = None
    keep_daily_days: int | None = None
    is_public: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class SeriesDefinition:
    """A probe with parameters, bound to resources, on a schedule.

    *bindings* maps each role to the names of its resources, in order.
    """

    name: str
    probe: str
    bindings: Mapping[str, Sequence[str]]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    schedule: str = ""
    enabled: bool = True
    limit_seconds: float = 1800.0
    suite: str = "main"
    timezone: str = "UTC"
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    reporter: str = HOME
    leader: str | None = None
    follows: str = ""
    delay_seconds: int = 0
    jitter_seconds: int = 0
    retry_schedule: str = ""
    retry_passes: int = 1
    exclusive: str = ""
    exclusive_wait_seconds: int = 900
    max_load1: float | None = None
    warm_up_runs: int = 0
    kind: str = ""


DEFAULT_REPORTER = ReporterDefinition("")
DEFAULT_SERIES = SeriesDefinition("", "", {})


@dataclass(frozen=True)
class MaintenanceDefinition:
    """Maintenance of *sites* (empty: all sites): one window, or one window per slot of *schedule*."""

    name: str
    title: str = ""
    sites: Sequence[str] = ()
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    schedule: str = ""
    timezone: str = "UTC"
    duration_seconds: int | None = None


@dataclass(frozen=True)
class AlertDefinition:
    """An alert rule.

    *watches* has either the key ``everything``, or lists of names under ``suites``, ``sites``,
    ``series``, ``probes`` and ``reporters``.
    """

    name: str
    title: str = ""
    enabled: bool = True
    watches: Mapping[str, Any] = field(default_factory=dict)
    condition: str = ""
    threshold: int = 0
    notify: Sequence[Mapping[str, Any]] = ()
    repeat_seconds: int | None = None
    severity: str = "major"


@dataclass(frozen=True)
class AvailabilityProfileDefinition:
    """How the availability of *sites* (empty: all that no other profile names) is computed.

    *include*, *exclude* and *services* are as in the file, without empty keys.
    """

    name: str
    title: str = ""
    sites: Sequence[str] = ()
    valid_from: date | None = None
    needs: str = "all"
    include: Mapping[str, Any] | None = None
    exclude: Mapping[str, Any] | None = None
    services: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SignatureDefinition:
    """A cause of failures that gridcast does not ship (``monitor.analysis.signatures.signature``)."""

    name: str
    title: str = ""
    category: str = ""
    severity: str = ""
    patterns: Sequence[str] = ()
    help: str = ""
    counts_against_site: bool | None = None
    stages: Sequence[str] = ()
    tools: Sequence[str] = ()
    precedence: int = 0


Definition = (
    SiteDefinition
    | ResourceDefinition
    | ReporterDefinition
    | SuiteDefinition
    | SeriesDefinition
    | MaintenanceDefinition
    | AlertDefinition
    | AvailabilityProfileDefinition
    | SignatureDefinition
    | WebhookDefinition
)


@dataclass(frozen=True)
class GridDefinition:
    """All definitions by name. The fields are the sections of a grid file, in their order."""

    sites: Mapping[str, SiteDefinition] = field(default_factory=dict)
    resources: Mapping[str, ResourceDefinition] = field(default_factory=dict)
    reporters: Mapping[str, ReporterDefinition] = field(default_factory=dict)
    suites: Mapping[str, SuiteDefinition] = field(default_factory=dict)
    series: Mapping[str, SeriesDefinition] = field(default_factory=dict)
    maintenance: Mapping[str, MaintenanceDefinition] = field(default_factory=dict)
    alerts: Mapping[str, AlertDefinition] = field(default_factory=dict)
    availability_profiles: Mapping[str, AvailabilityProfileDefinition] = field(default_factory=dict)
    signatures: Mapping[str, SignatureDefinition] = field(default_factory=dict)
    webhooks: Mapping[str, WebhookDefinition] = field(default_factory=dict)
