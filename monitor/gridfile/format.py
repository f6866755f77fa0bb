"""The format of a grid file: one model per noun. The JSON Schema and the reference page are made from these.

Whatever can be told from a value alone is checked here; what takes two of them, in ``checking``. A key that
is not here is refused. Everything has the type that it is written with: a number is no text.
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

from monitor.alerts import conditions
from monitor.gridfile.definition import DEFAULT_RESOURCE, DEFAULT_SERIES
from monitor.models.series import MOST_DAYS
from reporters.fields import parse_time

if TYPE_CHECKING:
    from monitor.alerts.conditions.base import AlertCondition

VERSION = 1
WORD = r"^[-a-zA-Z0-9_]+$"
NAME = "letters, digits, - and _"
MAX_SECONDS = 31_536_000  # a year
MAX_SMALL, MAX_WHOLE, MAX_LARGE = 2**15 - 1, 2**31 - 1, 2**63 - 1  # that columns of the depot hold

Name = Annotated[str, StringConstraints(pattern=WORD, min_length=1, max_length=50)]
SeriesName = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Title = Annotated[str, StringConstraints(max_length=200)]
Seconds = Annotated[int, Field(ge=0, le=MAX_SECONDS)]
Days = Annotated[int, Field(ge=1, le=MOST_DAYS)]
Scalar = Annotated[Any, WithJsonSchema({"type": ["string", "number", "boolean"]})]


def _moment(value: Any) -> Any:
    return parse_time(value) if isinstance(value, str) else value


def _nothing_is_empty(value: Any) -> Any:
    return {} if value is None else value


Moment = Annotated[
    datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]


class Entry(BaseModel):
    """What all have in common."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _may_be_left_empty(cls, value: Any) -> Any:
        """``main:`` with nothing after it is what ``main: {}`` is."""
        return _nothing_is_empty(value)


class WayEntry(BaseModel):
    """One way to reach a resource: a kind, and the options of that kind (docs/sites.md)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str = Field(description="Which way, such as `ssh`; the options of each are in docs/sites.md.")


class SiteEntry(Entry):
    """An organisation's place on the grid."""

    title: Title = Field("", description="What people call it.")
    runs_at_once: Annotated[int, Field(ge=1, le=MAX_SMALL)] | None = Field(
        None, description="In how many runs it takes part at once, at most; without it, in any number."
    )
    runs_per_day: Annotated[int, Field(ge=0, le=MAX_WHOLE)] | None = Field(
        None, description="In how many runs it takes part in a day (UTC); without it, in any number."
    )
    bytes_per_day: Annotated[int, Field(ge=0, le=MAX_LARGE)] | None = Field(
        None, description="How many bytes it sends and receives in a day; without it, any number."
    )
    cpu_hours_per_day: Annotated[float, Field(ge=0, le=MAX_LARGE)] | None = Field(
        None, description="How much processor time jobs have in a day; without it, as much as they ask."
    )


class ResourceEntry(Entry):
    """One reachable host of a site, with how to reach it."""

    site: Name = Field(description="The site that it belongs to, one of `sites`.")
    scratch: str = Field(
        pattern="^/", max_length=500, description="An absolute directory at the resource; runs work below it."
    )
    shell: WayEntry = Field(
        description="How programs are run there.", examples=[{"kind": "ssh", "host": "h"}]
    )
    transfer: WayEntry = Field(description="How files get there; both ends of a copy need the same kind.")
    batch: WayEntry = Field(
        WayEntry.model_validate(DEFAULT_RESOURCE.batch), description="How jobs are handed in."
    )
    address: str = Field(
        "",
        max_length=253,
        description="Host name or IP address under which other sites reach it, where that is not its host.",
    )


class SuiteEntry(Entry):
    """A named group of series."""

    title: Title = Field("", description="What people call it.")
    viewers: list[str] = Field(
        [], description="Groups of users who see it. Groups are made in `/admin/`; without any, all see it."
    )
    keep_reports_days: Days | None = Field(
        None, description="For so many days raw reports are kept (docs/depot.md); without it, for ever."
    )
    keep_samples_days: Days | None = Field(
        None, description="For so many days samples are kept; without it, for ever."
    )
    keep_hourly_days: Days | None = Field(
        None,
        description="For so many days rollups of hours are kept, at least as long as samples; without it, "
        "for ever.",
    )
    keep_daily_days: Days | None = Field(
        None,
        description="For so many days rollups of days are kept, at least as long as of hours; without it, "
        "for ever.",
    )

    @model_validator(mode="after")
    def _keeps_rollups_longest(self) -> Self:
        tiers = ("keep_samples_days", "keep_hourly_days", "keep_daily_days")
        for less, more in pairwise(tiers):
            shorter, longer = getattr(self, less), getattr(self, more)
            if longer is not None and (shorter is None or shorter > longer):
                has = "for ever" if shorter is None else f"for {shorter} days"
                raise ValueError(f"{less} is {has}; expected {more} to be at least as long, not {longer}")
        return self


class Mesh(Entry):
    """All pairs of a list: one series for each, with `{source}` and `{target}`."""

    over: list[Scalar] = Field(min_length=2, description="What the pairs are made of, resources mostly.")
    unordered: bool = Field(False, description="Whether one series for A and B is enough; else B to A, too.")


class SeriesEntry(Entry):
    """A probe with parameters, bound to resources, on a schedule, run by one reporter.

    With `for` or `mesh` it stands for many: its name and every text in it may have `{placeholders}`, and
    `{{` and `}}` are braces. A parameter that is only a placeholder becomes the value itself, a number, say.
    """

    suite: str = Field(description="The suite that it belongs to, one of `suites`.")
    probe: str = Field(description="What is run: a probe or an application (docs/probes.md).")
    kind: Literal["", "grid", "application"] = Field(
        "", description="What its runs tell of, where the probe does not say so: of what was imported, say."
    )
    bindings: dict[str, list[str]] = Field(description="The resources of each role of the probe, in order.")
    parameters: dict[str, Scalar] = Field({}, description="Of the probe; what is left out is its default.")
    schedule: str = Field(
        DEFAULT_SERIES.schedule,
        max_length=200,
        description="Five fields of cron, or `@hourly` ...; `H` is a slot hashed from the name. Without a "
        "schedule it runs when somebody asks.",
    )
    timezone: str = Field(
        DEFAULT_SERIES.timezone, description="Whose clock the schedule means, by IANA name."
    )
    starts_at: Moment | None = Field(
        None, description="No slot is before it. RFC 3339 with a zone, as in `2005-03-01T00:00:00Z`."
    )
    ends_at: Moment | None = Field(None, description="No slot is after it.")
    leader: str | None = Field(
        None, description="The series whose schedule it follows, instead of one of its own (docs/ledger.md)."
    )
    follows: Literal["", "with", "after"] = Field(
        "", description="How it follows its leader: at its slots, or when its run has ended."
    )
    delay_seconds: Seconds = Field(0, description="How much later than that.")
    jitter_seconds: Seconds = Field(
        0, description="A run begins up to so long after its slot, each at a time of its own."
    )
    retry_schedule: str = Field(
        "", max_length=200, description="Cron for more runs, after one that did not pass."
    )
    retry_passes: int = Field(
        1,
        ge=1,
        le=MAX_SMALL,
        description="After so many passes in a row only its own schedule holds again.",
    )
    exclusive: Literal["", "site", "link"] = Field(
        "",
        description="What it does not share with other exclusive series while it runs: sites, or pairs.",
    )
    exclusive_wait_seconds: Seconds = Field(
        DEFAULT_SERIES.exclusive_wait_seconds, description="How long a slot may wait for that."
    )
    max_load1: Annotated[float, Field(gt=0, le=MAX_LARGE)] | None = Field(
        None,
        description="A run is skipped while the load of one minute is above this at one of its resources.",
    )
    warm_up_runs: int = Field(
        0, ge=0, le=5, description="How often the probe is run before, its values thrown away."
    )
    reporter: str = Field(DEFAULT_SERIES.reporter, description="Who runs it. Reporters are in the depot.")
    enabled: bool = Field(True, description="Whether its schedule holds.")
    limit_seconds: float = Field(
        DEFAULT_SERIES.limit_seconds,
        gt=0,
        le=MAX_SECONDS,
        description="A run that takes longer is stopped, cleaned up, and ends as `timed_out`.",
    )
    for_: dict[Name, Annotated[list[Scalar], Field(min_length=1)]] = Field(
        {},
        alias="for",
        description="Lists by placeholder: one series for each value, of several lists for each combination.",
        examples=[{"site": ["sdsc", "ncsa"]}],
    )
    mesh: Mesh | None = Field(None, description="One series for each pair of a list.")


class MaintenanceEntry(Entry):
    """Planned work, during which no slot begins: one window, or one at every slot of a schedule."""

    title: Title = Field("", description="What people call it; the reason of slots that are skipped.")
    sites: list[Name] = Field(
        [], description="Where it is, of `sites`; without any, everywhere.", examples=[["sdsc"]]
    )
    starts_at: Moment | None = Field(
        None,
        description="When the one window begins, as in `2005-03-01T08:00:00Z`; with a schedule, no window "
        "begins before it.",
    )
    ends_at: Moment | None = Field(
        None, description="When the one window ends; with a schedule, no window begins after it."
    )
    schedule: str = Field(
        "",
        max_length=200,
        description="When each window begins: five fields of cron, nothing hashed (docs/schedules.md).",
    )
    timezone: str = Field("UTC", description="Whose clock the schedule means, by IANA name.")
    duration_seconds: Annotated[int, Field(ge=1, le=MAX_SECONDS)] | None = Field(
        None, description="With a schedule: how long each window is."
    )


class Watches(Entry):
    """What a rule watches: everything, or the series of suites, those at sites, and those by name."""

    everything: bool = Field(False, description="Whether it watches every series.")
    suites: list[str] = Field([], description="All series of these suites.", examples=[["main"]])
    sites: list[str] = Field([], description="All series that bind a resource of these sites.")
    series: list[str] = Field([], description="These series.")

    @property
    def is_named(self) -> bool:
        """Whether it names anything."""
        return bool(self.suites or self.sites or self.series)

    @model_validator(mode="after")
    def _says_it_once(self) -> Self:
        if self.everything and self.is_named:
            raise ValueError("it has everything; expected either that or names")
        return self


class ChannelEntry(BaseModel):
    """One way to tell people: a kind, and the options of that kind (docs/alerts.md)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str = Field(description="Which way, such as `email`; the options of each are in docs/alerts.md.")


class _AlertRuleHead(Entry):
    title: Title = Field("", description="What people call it.")
    enabled: bool = Field(
        True, description="Whether it watches; its open alerts are closed when it does not."
    )
    watches: Watches = Field(description="The series that it watches.", examples=[{"suites": ["main"]}])


def _threshold(condition: type[AlertCondition]) -> Any:
    bounds = Field(ge=condition.least, le=condition.most)
    return (Annotated[int, bounds] | None, Field(None, description=condition.description))


if TYPE_CHECKING:
    _WithConditions = _AlertRuleHead
else:  # a key for each file of monitor/alerts/conditions/
    _WithConditions = create_model(
        "_WithConditions",
        __base__=_AlertRuleHead,
        **{kind: _threshold(conditions.load(kind)) for kind in conditions.names()},
    )


class AlertRuleEntry(_WithConditions):
    """When an alert of a series is open, and which channels are notified: by exactly one condition."""

    notify: list[ChannelEntry] = Field(
        [],
        description="The channels that are notified when it opens and closes.",
        examples=[[{"kind": "log"}]],
    )

    @property
    def conditions(self) -> dict[str, int]:
        """The threshold of each condition that the rule has."""
        thresholds = {kind: getattr(self, kind) for kind in conditions.names()}
        return {kind: threshold for kind, threshold in thresholds.items() if threshold is not None}

    @model_validator(mode="after")
    def _has_one_condition_and_watches(self) -> Self:
        if len(self.conditions) != 1:
            many = "several conditions" if self.conditions else "no condition"
            raise ValueError(f"it has {many}; expected one of {', '.join(conditions.names())}")
        if self.enabled and not (self.watches.everything or self.watches.is_named):
            expected = "expected everything: true, or some of suites, sites and series"
            raise ValueError(f"it watches nothing; {expected}")
        return self


class GridFile(Entry):
    """A grid: everything that its series refer to is in the file, but reporters and groups of users."""

    version: Literal[1] = Field(description="`1`, the version of this format.")
    sites: Annotated[dict[Name, SiteEntry], BeforeValidator(_nothing_is_empty)] = Field(
        {}, description="Organisations' places on the grid, by name."
    )
    resources: Annotated[dict[Name, ResourceEntry], BeforeValidator(_nothing_is_empty)] = Field(
        {}, description="Reachable hosts, by name."
    )
    suites: Annotated[dict[Name, SuiteEntry], BeforeValidator(_nothing_is_empty)] = Field(
        {}, description="Named groups of series, by name."
    )
    series: Annotated[dict[SeriesName, SeriesEntry], BeforeValidator(_nothing_is_empty)] = Field(
        {}, description="What is run, by name."
    )
    maintenance: Annotated[dict[Name, MaintenanceEntry], BeforeValidator(_nothing_is_empty)] = Field(
        {}, description="Planned work, by name (docs/ledger.md)."
    )
    alerts: Annotated[dict[Name, AlertRuleEntry], BeforeValidator(_nothing_is_empty)] = Field(
        {}, description="Alert rules, by name (docs/alerts.md)."
    )


MODELS: dict[str, type[Entry]] = {
    "sites": SiteEntry,
    "resources": ResourceEntry,
    "suites": SuiteEntry,
    "series": SeriesEntry,
    "maintenance": MaintenanceEntry,
    "alerts": AlertRuleEntry,
}
