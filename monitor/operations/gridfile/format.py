"""The format of a grid file: one model per section; the JSON Schema and the reference page derive from them.

The models check single values; ``checking`` compares several values. Unknown keys are refused, and types
are not converted: a number is not accepted as text.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from monitor.analysis.signatures.loading import Name as SignatureName
from monitor.analysis.signatures.loading import SignatureEntry
from monitor.core.yamlfile.entry import Entry, Title, none_to_empty
from monitor.models.site import MOST_CONTACTS, MOST_NOTES
from monitor.models.suite import MOST_DAYS
from monitor.operations.gridfile.alert_entries import AlertRuleEntry
from monitor.operations.gridfile.availability_entries import AvailabilityProfileEntry
from monitor.operations.gridfile.definition import DEFAULT_REPORTER, DEFAULT_RESOURCE, DEFAULT_SERIES
from monitor.operations.gridfile.storage_entries import StorageEntry
from monitor.operations.gridfile.webhook_entries import WebhookEntry
from reporters.fields import parse_time

VERSION = 1
WORD = r"^[-a-zA-Z0-9_]+$"
MAX_SECONDS = 31_536_000  # a year
MAX_SMALL, MAX_WHOLE, MAX_LARGE = 2**15 - 1, 2**31 - 1, 2**63 - 1  # the limits of columns in the depot

Name = Annotated[str, StringConstraints(pattern=WORD, min_length=1, max_length=50)]
SeriesName = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Seconds = Annotated[int, Field(ge=0, le=MAX_SECONDS)]
Days = Annotated[int, Field(ge=1, le=MOST_DAYS)]
Scalar = Annotated[Any, WithJsonSchema({"type": ["string", "number", "boolean"]})]


def _parse_moment(value: Any) -> Any:
    return parse_time(value) if isinstance(value, str) else value


Moment = Annotated[
    datetime, BeforeValidator(_parse_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]


class AccessEntry(BaseModel):
    """An access method of a resource: a kind, and the options of that kind (docs/sites.md)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str = Field(description="Kind of access, such as `ssh`; docs/sites.md lists kinds and options.")


class ContactEntry(Entry):
    """A contact of a site."""

    name: str = Field(max_length=200, description="Name of a person, team or service.")
    email: str = Field("", max_length=254, description="E-mail address.")


class SiteEntry(Entry):
    """An organisation's place on the grid."""

    title: Title = Field("", description="Name shown on pages.")
    latitude: Annotated[float, Field(ge=-90, le=90)] | None = Field(
        None, description="Degrees, north positive; with `longitude`, the place of the site on the map."
    )
    longitude: Annotated[float, Field(ge=-180, le=180)] | None = Field(
        None, description="Degrees, east positive."
    )
    is_public: bool = Field(
        False, description="Show state and availability on `/public/`, without a login (docs/pages.md)."
    )
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
    notes: Annotated[str, StringConstraints(max_length=MOST_NOTES)] = Field(
        "", description="What operators should know: plain text, shown on the page of the site."
    )
    contacts: Annotated[list[ContactEntry], Field(max_length=MOST_CONTACTS)] = Field(
        default_factory=list, description="Whom to ask about the site."
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
    storage: StorageEntry | None = Field(
        None, description="What the storage area of `scratch` is made of and costs (docs/storage.md)."
    )


class ReporterEntry(Entry):
    """A process that runs series, in addition to the reporter `home` of the service (docs/reporters.md)."""

    site: Name | None = Field(
        None, description="Site at which it runs as an agent, one of `sites`; default: a Celery worker."
    )
    capacity: Annotated[int, Field(ge=1, le=MAX_SMALL)] = Field(
        DEFAULT_REPORTER.capacity, description="Maximum number of concurrent runs."
    )


class SuiteEntry(Entry):
    """A named group of series."""

    title: Title = Field("", description="Name shown on pages.")
    viewers: list[str] = Field(
        [],
        description="User groups that can see the suite (see docs/accounts.md); default: all users.",
    )
    is_public: bool = Field(
        False, description="Show the state on `/public/`, without a login (docs/pages.md)."
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
    probe: str = Field(
        description="Name of the probe or application (docs/probes.md), or `reported` (docs/reports.md)."
    )
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
        description="Reporter that runs the series: `home`, or one of `reporters`. The agent of a site runs "
        "only series that are bound to a resource of its site.",
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


class GridFile(Entry):
    """A grid: the file defines everything that its series refer to, except user groups.

    A series may also name a reporter that exists in the depot.
    """

    version: Literal[1] = Field(description="Version of this format: `1`.")
    sites: Annotated[dict[Name, SiteEntry], BeforeValidator(none_to_empty)] = Field(
        {}, description="Sites by name."
    )
    resources: Annotated[dict[Name, ResourceEntry], BeforeValidator(none_to_empty)] = Field(
        {}, description="Resources by name."
    )
    reporters: Annotated[dict[Name, ReporterEntry], BeforeValidator(none_to_empty)] = Field(
        {}, description="Reporters by name, except `home`."
    )
    suites: Annotated[dict[Name, SuiteEntry], BeforeValidator(none_to_empty)] = Field(
        {}, description="Suites by name."
    )
    series: Annotated[dict[SeriesName, SeriesEntry], BeforeValidator(none_to_empty)] = Field(
        {}, description="Series by name."
    )
    maintenance: Annotated[dict[Name, MaintenanceEntry], BeforeValidator(none_to_empty)] = Field(
        {}, description="Maintenance windows by name (docs/ledger.md)."
    )
    alerts: Annotated[dict[Name, AlertRuleEntry], BeforeValidator(none_to_empty)] = Field(
        {}, description="Alert rules by name (docs/alerts.md)."
    )
    availability_profiles: Annotated[dict[Name, AvailabilityProfileEntry], BeforeValidator(none_to_empty)] = (
        Field({}, description="Availability profiles by name (docs/availability.md).")
    )
    signatures: Annotated[dict[SignatureName, SignatureEntry], BeforeValidator(none_to_empty)] = Field(
        {}, description="Own signatures of failures by name in lower case with dashes (docs/failures.md)."
    )
    webhooks: Annotated[dict[Name, WebhookEntry], BeforeValidator(none_to_empty)] = Field(
        {}, description="Webhooks by name (docs/webhooks.md)."
    )


MODELS: dict[str, type[Entry]] = {
    "sites": SiteEntry,
    "resources": ResourceEntry,
    "reporters": ReporterEntry,
    "suites": SuiteEntry,
    "series": SeriesEntry,
    "maintenance": MaintenanceEntry,
    "alerts": AlertRuleEntry,
    "availability_profiles": AvailabilityProfileEntry,
    "signatures": SignatureEntry,
    "webhooks": WebhookEntry,
}
