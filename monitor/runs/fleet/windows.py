"""The times in which an agent must not start runs: maintenance, holds, and budgets that are used up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from monitor.models import Hold
from monitor.models.hold import HoldKind
from monitor.models.natural_order import sort_name
from monitor.runs.ledger.admission_context import used_up_sites
from monitor.runs.maintenance import windows as maintenance
from reporters.report import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from monitor.models import Reporter

AHEAD = timedelta(weeks=5)  # an agent works for weeks while the server is away
MAX_WINDOWS = 5_000
_DAY = timedelta(days=1)
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SeriesScopes:
    """A series of the reporter, and what may be held or in maintenance."""

    name: str
    suite: str
    sites: frozenset[str]


@dataclass(frozen=True)
class ClosedWindow:
    """A time in which no run of *series* starts; without an end if *ends_at* is None."""

    series: tuple[str, ...]
    starts_at: datetime
    ends_at: datetime | None
    reason: str

    def as_document(self) -> dict[str, Any]:
        return {
            "series": list(self.series),
            "starts_at": rfc3339(self.starts_at),
            "ends_at": rfc3339(self.ends_at) if self.ends_at else None,
            "reason": self.reason,
        }


def windows(reporter: Reporter, series: Sequence[SeriesScopes], now: datetime) -> list[ClosedWindow]:
    """Return the windows of *series*, which *reporter* runs: maintenance first, as it gives the reason.

    Windows of maintenance are those of this week and the weeks after it, so the list of a recurring window
    changes once a week.
    """
    if not series:
        return []
    closed = [*_maintenance(series, now), *_holds(reporter.name, series, now), *_budgets(series, now)]
    if reporter.capacity == 0:
        closed.insert(0, ClosedWindow(_names(series), _LONG_AGO, None, "the reporter has a capacity of 0"))
    return closed[:MAX_WINDOWS]


def _maintenance(series: Sequence[SeriesScopes], now: datetime) -> list[ClosedWindow]:
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = midnight - timedelta(days=midnight.weekday())
    planned = list(maintenance.planned_windows(monday, monday + AHEAD))
    closed = [
        ClosedWindow(names, window.starts_at, window.ends_at, window.reason)
        for window in planned
        if (names := _names(each for each in series if window.covers(each.sites)))
    ]
    return sorted(closed, key=lambda window: (window.starts_at, window.reason))


def _holds(reporter: str, series: Sequence[SeriesScopes], now: datetime) -> Iterator[ClosedWindow]:
    for hold in Hold.objects.at(now):
        names = _names(each for each in series if _is_held(each, reporter, hold))
        if names:
            yield ClosedWindow(names, hold.began_at, hold.until, hold.reason)


def _is_held(series: SeriesScopes, reporter: str, hold: Hold) -> bool:
    if hold.kind == HoldKind.SITE:
        return hold.name in series.sites
    scopes = {HoldKind.SERIES: series.name, HoldKind.SUITE: series.suite, HoldKind.REPORTER: reporter}
    return scopes.get(HoldKind(hold.kind)) == hold.name


def _budgets(series: Sequence[SeriesScopes], now: datetime) -> Iterator[ClosedWindow]:
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for site in sorted(used_up_sites(now)):
        names = _names(each for each in series if site in each.sites)
        if names:
            yield ClosedWindow(names, midnight, midnight + _DAY, f"budget: {site} has none left today")


def _names(series: Iterable[SeriesScopes]) -> tuple[str, ...]:
    return tuple(sorted((each.name for each in series), key=sort_name))
