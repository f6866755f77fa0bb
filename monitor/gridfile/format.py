"""The format of a grid file: one model per section; the JSON Schema and the reference page derive from them.

The models check single values; ``checking`` compares several values. Unknown keys are refused, and types
are not converted: a number is not accepted as text.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    create_model,
    model_validator,
)

from monitor.alerts import conditions, reporter_conditions
from monitor.gridfile.definition import DEFAULT_RESOURCE, DEFAULT_SERIES
from monitor.models.series import MOST_DAYS
from reporters.fields import parse_time

if TYPE_CHECKING:
    from monitor.alerts.conditions.base import AlertCondition
    from monitor.alerts.reporter_conditions.base import ReporterCondition

VERSION = 1
WORD = r"^[-a-zA-Z0-9_]+$"
NAME = "letters, digits, - and _"
MAX_SECONDS = 31_536_000  # a year
MAX_SMALL, MAX_WHOLE, MAX_LARGE = 2**15 - 1, 2**31 - 1, 2**63 - 1  # the limits of columns in the depot

Name = Annotated[str, StringConstraints(pattern=WORD, min_length=1, max_length=50)]
SeriesName = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Title = Annotated[str, StringConstraints(max_length=200)]
Seconds = Annotated[int, Field(ge=0, le=MAX_SECONDS)]
Days = Annotated[int, Field(ge=1, le=MOST_DAYS)]
Scalar = Annotated[Any, WithJsonSchema({"type": ["string", "number", "boolean"]})]


def _parse_moment(value: Any) -> Any:
    return parse_time(value) if isinstance(value, str) else value


def _none_to_empty(value: Any) -> Any:
    return {} if value is None else value


Moment = Annotated[
    datetime, BeforeValidator(_parse_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]


class Entry(BaseModel):
    """Base of all entries."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _accept_empty(cls, value: Any) -> Any:
        """Accept ``main:`` as ``main: {}``."""
        return _none_to_empty(value)


class AccessEntry(BaseModel):
    """An access method of a resource: a kind, and the options of that kind (docs/sites.md)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str = Field(description="Kind of access, such as `ssh`; docs/sites.md lists kinds and options.")


class SiteEntry(Entry):
    """An organisation's place on the grid."""

    title: Title = Field("", description="Name shown on pages.")
    runs_at_once: Annotated[int, Field(ge=1, le=MAX_SMALL)] | None = Field(
        None, description="Maximum number of concurrent runs that use the site; default: unlimited."
    )
    runs_per_day: Annotated[int, Field(ge=0, le=MAX_WHOLE)] | None = Field(
        None, description="Maximum number of runs per day (UTC); default: unlimited."
    )
    bytes_per_day: Annotated[int, Field(ge=0, le=MAX_LARGE)] | None = Field(
        None, description="Maximum number of bytes sent and received per day; default: unlimited."
    )
    cpu_hours_per_day: Annotated[float, Field(ge=0, le=MAX_LARGE)] | None = Field(
        None, description="Maximum processor time of jobs per day; default: unlimited."
    )


class ResourceEntry(Entry):
    """One reachable host of a site, and its access methods."""

    site: Name = Field(description="Site of the resource, one of `sites`.")
    scratch: str = Field(
        pattern="^/",
        max_length=500,
        description="Absolute directory at the resource; runs work below it.",
    )
    shell: AccessEntry = Field(
        description="Access method that runs programs.", examples=[{"kind": "ssh", "host": "h"}]
    )
    transfer: AccessEntry = Field(
        description="Access method that copies files; both ends need the same kind."
    )
    batch: AccessEntry = Field(
        AccessEntry.model_validate(DEFAULT_RESOURCE.batch),
        description="Access method that submits batch jobs.",
    )
    address: str = Field(
        "",
        max_length=253,
        description="Host name or IP address that other sites use, if it differs from the host of the shell.",
    )


class SuiteEntry(Entry):
    """A named group of series."""

    title: Title = Field("", description="Name shown on pages.")
    viewers: list[str] = Field(
        [],
        description="User groups that can see the suite (see `/admin/`); default: all users.",
    )
    keep_reports_days: Days | None = Field(
        None, description="Retention of raw reports in days (docs/depot.md); default: unlimited."
    )
    keep_samples_days: Days | None = Field(
        None, description="Retention of samples in days; default: unlimited."
    )
    keep_hourly_days: Days | None = Field(
        None,
        description="Retention of hourly rollups in days, at least that of samples; default: unlimited.",
    )
    keep_daily_days: Days | None = Field(
        None,
        description="Retention of daily rollups in days, at least that of hours; default: unlimited.",
    )

    @model_validator(mode="after")
    def _keep_rollups_longest(self) -> Self:
        tiers = ("keep_samples_days", "keep_hourly_days", "keep_daily_days")
        for less, more in pairwise(tiers):
            shorter, longer = getattr(self, less), getattr(self, more)
            if longer is not None and (shorter is None or shorter > longer):
                least = "unlimited" if shorter is None else f"{shorter} days"
                raise ValueError(f"expected {more} to be at least {less} ({least}), got {longer}")
        return self


class Mesh(Entry):
    """One series for each pair of a list, with the placeholders `{source}` and `{target}`."""

    over: list[Scalar] = Field(min_length=2, description="Values to pair, usually resources.")
    unordered: bool = Field(
        False, description="One series per unordered pair; otherwise one for A to B and one for B to A."
    )


class SeriesEntry(Entry):
    """A probe with parameters, bound to resources, on a schedule, run by one reporter.

    With `for` or `mesh` the entry expands to many series: its name and all texts in it may have
    `{placeholders}`; `{{` and `}}` are literal braces. A parameter that is only a placeholder gets the
    type of the value, such as number.
    """

    suite: str = Field(description="Suite of the series, one of `suites`.")
    probe: str = Field(description="Name of the probe or application (docs/probes.md).")
    kind: Literal["", "grid", "application"] = Field(
        "",
        description="Kind of an imported series; other series have the kind of their probe.",
    )
    bindings: dict[str, list[str]] = Field(description="Resources by role of the probe, in order.")
    parameters: dict[str, Scalar] = Field(
        {}, description="Parameters of the probe; missing ones have their defaults."
    )
    schedule: str = Field(
        DEFAULT_SERIES.schedule,
        max_length=200,
        description="Five cron fields, or `@hourly` ...; `H` is hashed from the name. Without a schedule "
        "the series runs on request only.",
    )
    timezone: str = Field(DEFAULT_SERIES.timezone, description="IANA time zone of the schedule.")
    starts_at: Moment | None = Field(
        None, description="Earliest slot: `2005-03-01T00:00:00Z` (RFC 3339 with a zone)."
    )
    ends_at: Moment | None = Field(None, description="Latest slot.")
    leader: str | None = Field(
        None, description="Series whose slots this series follows, instead of a schedule (docs/ledger.md)."
    )
    follows: Literal["", "with", "after"] = Field(
        "", description="Start at the slots of the leader (`with`), or when its run has ended (`after`)."
    )
    delay_seconds: Seconds = Field(0, description="Delay after the slot or the end of the leader.")
    jitter_seconds: Seconds = Field(
        0, description="Maximum delay of a run after its slot; each slot has its own, hashed delay."
    )
    retry_schedule: str = Field(
        "", max_length=200, description="Cron schedule of additional runs after a run that did not pass."
    )
    retry_passes: int = Field(
        1,
        ge=1,
        le=MAX_SMALL,
        description="Number of consecutive passed runs that ends the retry schedule.",
    )
    exclusive: Literal["", "site", "link"] = Field(
        "",
        description="Exclude concurrent runs of other exclusive series at the same site or link.",
    )
    exclusive_wait_seconds: Seconds = Field(
        DEFAULT_SERIES.exclusive_wait_seconds, description="Maximum wait of a slot for exclusive access."
    )
    max_load1: Annotated[float, Field(gt=0, le=MAX_LARGE)] | None = Field(
        None,
        description="A run is skipped if the 1-minute load of one of its resources is higher.",
    )
    warm_up_runs: int = Field(
        0, ge=0, le=5, description="Number of warm-up runs before each run, whose values are discarded."
    )
    reporter: str = Field(
        DEFAULT_SERIES.reporter,
        description="Name of the reporter that runs the series; reporters are defined in the depot.",
    )
    enabled: bool = Field(True, description="Whether slots of the schedule are run.")
    limit_seconds: float = Field(
        DEFAULT_SERIES.limit_seconds,
        gt=0,
        le=MAX_SECONDS,
        description="Time limit; a run that exceeds it is stopped, cleaned up, and ends as `timed_out`.",
    )
    for_: dict[Name, Annotated[list[Scalar], Field(min_length=1)]] = Field(
        {},
        alias="for",
        description="Lists by placeholder: one series per value, or per combination of values.",
        examples=[{"site": ["sdsc", "ncsa"]}],
    )
    mesh: Mesh | None = Field(None, description="One series for each pair of a list.")


class MaintenanceEntry(Entry):
    """Maintenance, during which no run starts: one window, or a window at each time of its own schedule."""

    title: Title = Field("", description="Name shown on pages; the reason of skipped slots.")
    sites: list[Name] = Field(
        [], description="Sites under maintenance, of `sites`; default: all sites.", examples=[["sdsc"]]
    )
    starts_at: Moment | None = Field(
        None,
        description="Start of the window: `2005-03-01T08:00:00Z`; with a schedule, no window starts earlier.",
    )
    ends_at: Moment | None = Field(
        None, description="End of the window; with a schedule, no window starts later."
    )
    schedule: str = Field(
        "",
        max_length=200,
        description="Start of each window: five cron fields without `H` (docs/schedules.md).",
    )
    timezone: str = Field("UTC", description="IANA time zone of the schedule.")
    duration_seconds: Annotated[int, Field(ge=1, le=MAX_SECONDS)] | None = Field(
        None, description="Length of each window of a schedule."
    )


CONDITIONS = (*conditions.names(), *reporter_conditions.names())


class Watches(Entry):
    """The series, or the remote reporters, that a rule watches: all, or those that it names.

    The condition of the rule decides which of the two it watches.
    """

    everything: bool = Field(False, description="Watch every series, or every remote reporter.")
    suites: list[str] = Field([], description="Watch all series of these suites.", examples=[["main"]])
    sites: list[str] = Field(
        [],
        description="Watch all series that are bound to a resource of these sites, or the reporters at them.",
    )
    series: list[str] = Field([], description="Watch these series.")
    reporters: list[str] = Field([], description="Watch the series of these reporters, or the reporters.")

    @property
    def is_named(self) -> bool:
        return bool(self.suites or self.sites or self.series or self.reporters)

    @model_validator(mode="after")
    def _everything_or_names(self) -> Self:
        if self.everything and self.is_named:
            raise ValueError("expected either everything or names, not both")
        return self


class ChannelEntry(BaseModel):
    """A notification channel: a kind, and the options of that kind (docs/alerts.md)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str = Field(description="Kind of channel, such as `email`; docs/alerts.md lists kinds and options.")


class _AlertRuleBase(Entry):
    title: Title = Field("", description="Name shown on pages.")
    enabled: bool = Field(
        True, description="Whether the rule is evaluated; disabling it closes its open alerts."
    )
    watches: Watches = Field(
        description="Series or reporters that the rule watches.", examples=[{"suites": ["main"]}]
    )


def _threshold(condition: type[AlertCondition] | type[ReporterCondition]) -> Any:
    bounds = Field(ge=condition.least, le=condition.most)
    return (Annotated[int, bounds] | None, Field(None, description=condition.description))


if TYPE_CHECKING:
    _WithConditions = _AlertRuleBase
else:  # one key per file in monitor/alerts/conditions/ and monitor/alerts/reporter_conditions/
    _WithConditions = create_model(
        "_WithConditions",
        __base__=_AlertRuleBase,
        **{kind: _threshold(conditions.load(kind)) for kind in conditions.names()},
        **{kind: _threshold(reporter_conditions.load(kind)) for kind in reporter_conditions.names()},
    )


class AlertRuleEntry(_WithConditions):
    """An alert rule: exactly one condition for series or reporters, and the channels to notify."""

    notify: list[ChannelEntry] = Field(
        [],
        description="Channels to notify when an alert opens or closes.",
        examples=[[{"kind": "log"}]],
    )

    @property
    def conditions(self) -> dict[str, int]:
        """The thresholds of the conditions that are set, by kind."""
        thresholds = {kind: getattr(self, kind) for kind in CONDITIONS}
        return {kind: threshold for kind, threshold in thresholds.items() if threshold is not None}

    @model_validator(mode="after")
    def _has_one_condition_and_watches(self) -> Self:
        if len(self.conditions) != 1:
            number = "several conditions" if self.conditions else "no condition"
            raise ValueError(f"it has {number}; expected one of {', '.join(CONDITIONS)}")
        if self.enabled and not (self.watches.everything or self.watches.is_named):
            expected = "expected everything: true, or some of suites, sites, series and reporters"
            raise ValueError(f"it watches nothing; {expected}")
        (condition,) = self.conditions
        if condition in reporter_conditions.names() and (self.watches.suites or self.watches.series):
            raise ValueError(f"{condition} judges reporters; expected everything: true, sites or reporters")
        return self


class GridFile(Entry):
    """A grid: the file defines everything that its series refer to, except reporters and user groups."""

    version: Literal[1] = Field(description="Version of this format: `1`.")
    sites: Annotated[dict[Name, SiteEntry], BeforeValidator(_none_to_empty)] = Field(
        {}, description="Sites by name."
    )
    resources: Annotated[dict[Name, ResourceEntry], BeforeValidator(_none_to_empty)] = Field(
        {}, description="Resources by name."
    )
    suites: Annotated[dict[Name, SuiteEntry], BeforeValidator(_none_to_empty)] = Field(
        {}, description="Suites by name."
    )
    series: Annotated[dict[SeriesName, SeriesEntry], BeforeValidator(_none_to_empty)] = Field(
        {}, description="Series by name."
    )
    maintenance: Annotated[dict[Name, MaintenanceEntry], BeforeValidator(_none_to_empty)] = Field(
        {}, description="Maintenance windows by name (docs/ledger.md)."
    )
    alerts: Annotated[dict[Name, AlertRuleEntry], BeforeValidator(_none_to_empty)] = Field(
        {}, description="Alert rules by name (docs/alerts.md)."
    )


MODELS: dict[str, type[Entry]] = {
    "sites": SiteEntry,
    "resources": ResourceEntry,
    "suites": SuiteEntry,
    "series": SeriesEntry,
    "maintenance": MaintenanceEntry,
    "alerts": AlertRuleEntry,
}
