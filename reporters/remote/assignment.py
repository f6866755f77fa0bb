"""The assignment: the series that the server gives to this reporter, read strictly from a signed document.

Errors::

    AssignmentRefused      the document is not signed, malformed, too large, or older than the one in force
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, TypeVar

import probes
from reporters import batch, shells, transfers
from reporters.config import Assignment, ResourceConfig
from reporters.fields import Fields, Unfit, parse_object, shown
from reporters.schedule import InvalidSchedule, NoZoneDatabase, Schedule, parse_schedule

FORMAT = 1
MAX_BYTES = 4 * 1024 * 1024
MAX_SERIES = 2000
MAX_RESOURCES = 10_000
MAX_WINDOWS = 20_000
MAX_CAPACITY = 1000
_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}"  # it becomes part of a path
_MAX_CHARACTERS = 1000
_MAX_EXPECTED = 100
_WEEK_SECONDS = 7 * 86400.0
_EXCLUSIVE = ("", "site", "link")
_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")

Item = TypeVar("Item")


class AssignmentRefused(Exception):
    """The document is not signed, malformed, too large, or older than the one in force."""


@dataclass(frozen=True)
class AssignedSeries:
    """A series of the assignment.

    The slots are those of *schedule*, hashed by *schedule_name*, shifted by ``delay``. Without a schedule the
    series runs on request only. A run with a leader starts *delay_seconds* after the end of the leader's run.
    """

    name: str
    probe: str
    parameters: Mapping[str, Any]
    bindings: Mapping[str, Sequence[str]]
    schedule: str
    schedule_name: str
    timezone: str
    starts_at: datetime | None
    ends_at: datetime | None
    delay_seconds: float
    after: str
    jitter_seconds: int
    exclusive: str
    exclusive_wait_seconds: float
    limit_seconds: float
    max_load1: float | None
    warm_up_runs: int
    expected_seconds: Mapping[str, float]

    def parsed_schedule(self) -> Schedule | None:
        """Return the schedule without the delay; None if the series runs on request only.

        Raises:
            NoZoneDatabase: this host knows no time zones.
        """
        if not self.schedule:
            return None
        return parse_schedule(
            self.schedule,
            self.schedule_name,
            zone=self.timezone,
            starts_at=self.starts_at,
            ends_at=self.ends_at,
        )

    @property
    def delay(self) -> timedelta:
        """The time from a slot of the schedule to the slot of the series; none for a series with a leader."""
        return timedelta(seconds=0 if self.after else self.delay_seconds)


@dataclass(frozen=True)
class AssignedWindow:
    """A time in which the runs of *series* are skipped for *reason*; without an end if *ends_at* is None."""

    series: frozenset[str]
    starts_at: datetime
    ends_at: datetime | None
    reason: str

    def covers(self, series: str, now: datetime) -> bool:
        return (
            series in self.series and self.starts_at <= now and (self.ends_at is None or now < self.ends_at)
        )


@dataclass(frozen=True)
class SiteAssignment:
    """All series of this reporter, by name, and the resources that they use."""

    reporter: str
    version: int
    issued_at: datetime
    series: Mapping[str, AssignedSeries]
    resources: Mapping[str, ResourceConfig]
    windows: Sequence[AssignedWindow]
    capacity: int

    def run_of(self, series: AssignedSeries, slot: datetime) -> Assignment:
        """Return the run of *series* at *slot*, as the runner expects it."""
        names = sorted({name for bound in series.bindings.values() for name in bound})
        return Assignment(
            series=series.name,
            slot=slot,
            reporter=self.reporter,
            probe=series.probe,
            bindings=series.bindings,
            resources={name: self.resources[name] for name in names},
            parameters=series.parameters,
            limit_seconds=series.limit_seconds,
            expected_seconds=series.expected_seconds,
            max_load1=series.max_load1,
            warm_up_runs=series.warm_up_runs,
        )

    def what_runs(self) -> SiteAssignment:
        """Return the assignment without what changes no run: its version, forecasts and windows."""
        series = {name: replace(one, expected_seconds={}) for name, one in self.series.items()}
        return replace(self, version=0, issued_at=_LONG_AGO, series=series, windows=())

    def sites(self, series: AssignedSeries) -> frozenset[str]:
        """Return the sites that *series* uses."""
        return frozenset(self.resources[name].site for bound in series.bindings.values() for name in bound)


def parse(document: str, reporter: str) -> SiteAssignment:
    """Parse the assignment of *reporter* strictly.

    Raises:
        AssignmentRefused: the document breaks its format or a limit, or is for another reporter.
    """
    try:
        return _assignment(Fields(parse_object(document, max_bytes=MAX_BYTES)), reporter)
    except Unfit as error:
        raise AssignmentRefused(f"malformed: {error}") from None


def _assignment(fields: Fields, reporter: str) -> SiteAssignment:
    if fields.integer("format") != FORMAT:
        raise fields.refuse("format", f"{FORMAT}, which this version reads")
    if fields.text("reporter") != reporter:
        raise fields.refuse("reporter", f"{reporter!r}, this reporter")
    capacity = _between(fields, "capacity", 1, MAX_CAPACITY)
    version, issued_at = fields.integer("version", minimum=1), fields.time("issued_at")
    resources = _resources(fields.fields("resources"))
    each = _limited(fields, "series", MAX_SERIES)
    series = [_series(one, resources) for one in each]
    by_name: dict[str, AssignedSeries] = {}
    for one, described in zip(series, each):
        if by_name.setdefault(one.name, one) is not one:
            raise described.refuse("name", "a unique name")
    for one, described in zip(series, each):
        if one.after == one.name:
            raise described.refuse("after", "another series")
    windows = [_window(window) for window in _limited(fields, "windows", MAX_WINDOWS)]
    return SiteAssignment(reporter, version, issued_at, by_name, resources, windows, capacity)


def _limited(fields: Fields, name: str, maximum: int) -> Sequence[Fields]:
    each = fields.each(name)
    if len(each) > maximum:
        raise Unfit(f"{name}: expected at most {maximum} entries, got {len(each)}")
    return each


def _series(fields: Fields, resources: Mapping[str, ResourceConfig]) -> AssignedSeries:
    series = AssignedSeries(
        name=fields.text("name", pattern=_NAME),
        probe=fields.choice("probe", probes.names()),
        parameters=fields.mapping("parameters"),
        bindings=_bindings(fields.fields("bindings"), resources),
        schedule=fields.text("schedule", maximum=_MAX_CHARACTERS),
        schedule_name=fields.text("schedule_name", maximum=_MAX_CHARACTERS),
        timezone=fields.text("timezone", maximum=_MAX_CHARACTERS),
        starts_at=fields.optional("starts_at", fields.time),
        ends_at=fields.optional("ends_at", fields.time),
        delay_seconds=fields.number("delay_seconds", minimum=0, maximum=_WEEK_SECONDS),
        after=fields.optional("after", fields.text) or "",
        jitter_seconds=_between(fields, "jitter_seconds", 0, int(_WEEK_SECONDS)),
        exclusive=fields.choice("exclusive", _EXCLUSIVE),
        exclusive_wait_seconds=fields.number("exclusive_wait_seconds", minimum=0, maximum=_WEEK_SECONDS),
        limit_seconds=_positive(fields, "limit_seconds"),
        max_load1=fields.optional("max_load1", lambda name: fields.number(name, minimum=0)),
        warm_up_runs=_between(fields, "warm_up_runs", 0, 100),
        expected_seconds=_expected(fields.fields("expected_seconds")),
    )
    _check_schedule(fields, series)
    return series


def _check_schedule(fields: Fields, series: AssignedSeries) -> None:
    """Raise Unfit for a schedule that no host could read; a missing time zone database is the host's."""
    try:
        series.parsed_schedule()
    except NoZoneDatabase:
        return
    except InvalidSchedule as error:
        raise Unfit(f"{fields.path('schedule')}: {error}") from None


def _between(fields: Fields, name: str, minimum: int, maximum: int) -> int:
    value = fields.integer(name, minimum=minimum)
    if value > maximum:
        raise fields.refuse(name, f"at most {maximum}")
    return value


def _positive(fields: Fields, name: str) -> float:
    value = fields.number(name, minimum=0, maximum=_WEEK_SECONDS)
    if value == 0:
        raise fields.refuse(name, "more than 0 seconds")
    return value


def _bindings(fields: Fields, resources: Mapping[str, ResourceConfig]) -> Mapping[str, Sequence[str]]:
    bindings = {role: fields.texts(role) for role in fields}
    for role, names in bindings.items():
        unknown = [name for name in names if name not in resources]
        if unknown:
            raise Unfit(f"{fields.path(role)}: there is no resource {shown(unknown[0])} in the assignment")
    return bindings


def _expected(fields: Fields) -> Mapping[str, float]:
    names = list(fields)
    if len(names) > _MAX_EXPECTED:
        raise Unfit(f"{fields.path('')}: expected at most {_MAX_EXPECTED} metrics, got {len(names)}")
    return {name: fields.number(name, minimum=0) for name in names}


def _resources(fields: Fields) -> Mapping[str, ResourceConfig]:
    names = list(fields)
    if len(names) > MAX_RESOURCES:
        raise Unfit(f"resources: expected at most {MAX_RESOURCES}, got {len(names)}")
    for name in names:
        if not re.fullmatch(_NAME, name):
            raise Unfit(f"resources: the name {shown(name)} becomes part of a path: expected {_NAME}")
    return {name: _resource(name, fields.fields(name)) for name in names}


def _resource(name: str, fields: Fields) -> ResourceConfig:
    return ResourceConfig(
        name=name,
        site=fields.text("site", maximum=_MAX_CHARACTERS),
        scratch=_scratch(fields),
        shell=_method(fields, "shell", shells.names),
        transfer=_method(fields, "transfer", transfers.names),
        batch=_method(fields, "batch", batch.names),
        address=fields.text("address", maximum=_MAX_CHARACTERS),
    )


def _scratch(fields: Fields) -> str:
    """Return the scratch directory, which must be an absolute path in its shortest form."""
    path = fields.text("scratch", maximum=_MAX_CHARACTERS)
    is_plain = posixpath.normpath(path) == path and not _CONTROL.search(path)
    if not path.startswith("/") or path.startswith("//") or path == "/" or not is_plain:
        raise fields.refuse("scratch", "an absolute path without '.', '..' and '//'")
    return path


def _method(fields: Fields, name: str, kinds: Callable[[], Sequence[str]]) -> Mapping[str, Any]:
    options = fields.mapping(name)
    kind = options.get("kind")
    if kind not in kinds():
        raise Unfit(f"{fields.path(name)}.kind: expected one of {', '.join(kinds())}, got {shown(kind)}")
    return options


def _window(fields: Fields) -> AssignedWindow:
    return AssignedWindow(
        frozenset(fields.texts("series")),
        fields.time("starts_at"),
        fields.optional("ends_at", fields.time),
        fields.text("reason", maximum=_MAX_CHARACTERS),
    )
