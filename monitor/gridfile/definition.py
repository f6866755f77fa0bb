"""What a grid is made of, as plain values: what the depot has, and what a file says it should have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from monitor.models.reporter import HOME
from reporters import config

DEFAULT_RESOURCE = config.ResourceConfig("", "", "/")


@dataclass(frozen=True)
class SiteDefinition:
    """An organisation's place on the grid."""

    name: str
    title: str = ""
    runs_at_once: int | None = None
    runs_per_day: int | None = None
    bytes_per_day: int | None = None
    cpu_hours_per_day: float | None = None


@dataclass(frozen=True)
class ResourceDefinition:
    """One reachable host of a site; as a reporter is told of it (``reporters.config.ResourceConfig``)."""

    name: str
    site: str
    scratch: str
    shell: Mapping[str, Any]
    transfer: Mapping[str, Any]
    batch: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULT_RESOURCE.batch))
    address: str = ""


@dataclass(frozen=True)
class SuiteDefinition:
    """A named group of series; with *viewers*, groups of users, only they see it.

    ``keep_..._days``: for how long the depot keeps what its series measured; None is for ever.
    """

    name: str
    title: str = ""
    viewers: Sequence[str] = ()
    keep_reports_days: int | None = None
    keep_samples_days: int | None = None
    keep_hourly_days: int | None = None
    keep_daily_days: int | None = None


@dataclass(frozen=True)
class SeriesDefinition:
    """A probe with parameters, bound to resources (role -> names, in order), on a schedule."""

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


DEFAULT_SERIES = SeriesDefinition("", "", {})


@dataclass(frozen=True)
class MaintenanceDefinition:
    """Planned work at *sites*, at all where none is named: one window, or one at every slot of *schedule*."""

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
    """When an alert is open; *watches* has ``everything``, or names of ``suites``, ``sites``, ``series``."""

    name: str
    title: str = ""
    enabled: bool = True
    watches: Mapping[str, Any] = field(default_factory=dict)
    condition: str = ""
    threshold: int = 0
    notify: Sequence[Mapping[str, Any]] = ()


Definition = (
    SiteDefinition
    | ResourceDefinition
    | SuiteDefinition
    | SeriesDefinition
    | MaintenanceDefinition
    | AlertDefinition
)


@dataclass(frozen=True)
class Grid:
    """Everything by name. The fields are the nouns of a grid file, in its order."""

    sites: Mapping[str, SiteDefinition] = field(default_factory=dict)
    resources: Mapping[str, ResourceDefinition] = field(default_factory=dict)
    suites: Mapping[str, SuiteDefinition] = field(default_factory=dict)
    series: Mapping[str, SeriesDefinition] = field(default_factory=dict)
    maintenance: Mapping[str, MaintenanceDefinition] = field(default_factory=dict)
    alerts: Mapping[str, AlertDefinition] = field(default_factory=dict)
