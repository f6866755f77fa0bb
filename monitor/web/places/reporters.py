"""The state of all reporters: what each said last, its series and the outcomes of its runs.

The number of queries does not depend on the number of reporters.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import Count, Exists, Max, OuterRef, Q

from monitor.models import Alert, Heartbeat, Hold, Reporter, ReporterKey, ReporterStatus, Run, Series
from monitor.models.hold import HoldKind
from monitor.models.reporter import PolicyStatus
from monitor.models.run import ENDED
from monitor.models.series import REPORTED_PROBE
from monitor.models.visibility import has_row
from monitor.runs.fleet.exchange import EXCHANGE_SECONDS
from monitor.runs.ledger import heartbeats
from monitor.web.status.latest import LETTERS
from monitor.web.status.standings import stored_states, visible_groups
from reporters.remote import archive

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.reporter import ReporterQuerySet

PAGE_ROWS = 100
OUTCOMES_WINDOW = timedelta(hours=24)
SILENT_AFTER = timedelta(seconds=3 * EXCHANGE_SECONDS)


class ReporterState(StrEnum):
    """The state of a reporter, the worst first."""

    SILENT = "silent"
    POLICY_UNREADABLE = "policy_unreadable"
    NEVER_SEEN = "never_seen"
    REVOKED = "revoked"
    NOT_ENROLLED = "not_enrolled"
    REPORTING = "reporting"

    @property
    def words(self) -> str:
        return self.replace("_", " ")


_ORDER = {state: rank for rank, state in enumerate(ReporterState)}


@dataclass(frozen=True)
class ReporterSummary:
    """A reporter and what it said at its last exchange.

    Attributes:
        seen_at: the last exchange; of a Celery worker, its last heartbeat; of programs outside of gridcast,
            the end of the last run that they reported.
        status: None for a Celery worker, and before the first exchange.
        series: the number of series that the user may see.
        latest: how many of these series have a newest run in each state; skipped runs do not count.
        held: the reason of a hold of the reporter; empty if it is not held.
        alerts: the number of open alerts about the reporter.
        is_outside: whether it is no process of gridcast: programs outside report all of its series.
    """

    reporter: Reporter
    state: ReporterState
    seen_at: datetime | None
    status: ReporterStatus | None
    series: int
    latest: Mapping[str, int] = field(default_factory=dict)
    held: str = ""
    alerts: int = 0
    is_outside: bool = False

    @property
    def name(self) -> str:
        return self.reporter.name

    @property
    def site(self) -> str:
        return self.reporter.site.name if self.reporter.site else ""

    @property
    def is_other_version(self) -> bool:
        """Whether the reporter runs another archive than this server would deploy."""
        digest = self.status.archive_sha256 if self.status else ""
        return bool(digest) and digest != server_archive_sha256()

    @property
    def policy(self) -> PolicyStatus | None:
        return PolicyStatus(self.status.policy_status) if self.status else None


@dataclass(frozen=True)
class ReporterPage:
    """One page of reporters, of *count* reporters in all; *page* counts from 1."""

    rows: Sequence[ReporterSummary]
    count: int
    page: int
    pages: int


@dataclass(frozen=True)
class ReporterStanding:
    """A reporter, its state, and what it said at its last exchange; attributes as in ``ReporterSummary``."""

    reporter: Reporter
    state: ReporterState
    seen_at: datetime | None
    status: ReporterStatus | None
    is_outside: bool = False


@functools.cache
def server_archive_sha256() -> str:
    """Return the digest of the reporter that ``make reporter`` writes from the sources of this server."""
    return archive.digest(archive.build())


def list_reporters(
    reporters: ReporterQuerySet, user: AbstractBaseUser | AnonymousUser, now: datetime
) -> list[ReporterSummary]:
    """Return *reporters*, the worst state first, with the series that *user* may see."""
    return _summaries(reporter_standings(reporters, now), user, now)


def page_of_reporters(
    reporters: ReporterQuerySet, user: AbstractBaseUser | AnonymousUser, now: datetime, page: int
) -> ReporterPage:
    """Return one page of ``list_reporters``; series are counted for the reporters of this page only."""
    states = reporter_standings(reporters, now)
    pages = max(math.ceil(len(states) / PAGE_ROWS), 1)
    page = min(max(page, 1), pages)
    rows = _summaries(states[(page - 1) * PAGE_ROWS : page * PAGE_ROWS], user, now)
    return ReporterPage(rows, len(states), page, pages)


def reporter_standings(reporters: ReporterQuerySet, now: datetime) -> list[ReporterStanding]:
    """Return *reporters* with their states, the worst first."""
    active_keys = ReporterKey.objects.active().filter(reporter=OuterRef("pk"))
    all_keys = ReporterKey.objects.filter(reporter=OuterRef("pk"))
    rows = (
        reporters.select_related("site", "status")
        .annotate(is_enrolled=Exists(active_keys), was_enrolled=Exists(all_keys))
        .order_by("sort_name")
    )
    heartbeat_at = dict(Heartbeat.objects.values_list("name", "seen_at"))
    unseen = [row.pk for row in rows if not row.is_remote and row.component not in heartbeat_at]
    reported_at = _last_reports(unseen) if unseen else {}
    standings = [
        _outside(row, reported_at[row.pk])
        if row.pk in reported_at
        else _standing(row, heartbeat_at.get(row.component), now)
        for row in rows
    ]
    return sorted(standings, key=lambda each: (_ORDER[each.state], each.reporter.sort_name))


def _last_reports(reporters: Sequence[int]) -> dict[int, datetime | None]:
    """Return the end of the last run of those *reporters* whose series are all reported from outside."""
    own = Series.objects.filter(reporter=OuterRef("pk"))
    outside = Reporter.objects.filter(~Q(has_row(own.exclude(probe=REPORTED_PROBE))), pk__in=reporters)
    series = Series.objects.filter(reporter__in=list(outside.values_list("pk", flat=True)))
    return dict(series.order_by().values_list("reporter").annotate(Max("latestrun__ended_at")))


def _outside(row: Reporter, reported_at: datetime | None) -> ReporterStanding:
    """Return the state of programs outside of gridcast: they send no heartbeats, so none is missing."""
    state = ReporterState.NEVER_SEEN if reported_at is None else ReporterState.REPORTING
    return ReporterStanding(row, state, reported_at, None, is_outside=True)


def _standing(row: Reporter, heartbeat_at: datetime | None, now: datetime) -> ReporterStanding:
    status: ReporterStatus | None = getattr(row, "status", None)
    if row.is_remote:
        return ReporterStanding(
            row, _remote_state(row, status, now), status.seen_at if status else None, status
        )
    return ReporterStanding(row, _worker_state(heartbeat_at, now), heartbeat_at, None)


def _summaries(
    standings: Sequence[ReporterStanding], user: AbstractBaseUser | AnonymousUser, now: datetime
) -> list[ReporterSummary]:
    rows = [each.reporter for each in standings]
    names = [row.name for row in rows]
    latest = _latest(user, rows, now)
    in_force = Hold.objects.at(now).filter(kind=HoldKind.REPORTER, name__in=names)
    holds = {hold.name: hold.reason for hold in in_force}
    alerts = Counter(Alert.objects.open().filter(reporter__in=rows).values_list("reporter", flat=True))
    return [
        ReporterSummary(
            each.reporter,
            each.state,
            each.seen_at,
            each.status,
            series=latest[each.reporter.pk].total(),
            latest=_ordered(latest[each.reporter.pk]),
            held=holds.get(each.reporter.name, ""),
            alerts=alerts[each.reporter.pk],
            is_outside=each.is_outside,
        )
        for each in standings
    ]


def _latest(
    user: AbstractBaseUser | AnonymousUser, reporters: Sequence[Reporter], now: datetime
) -> Mapping[int, Counter[str]]:
    """Return the number of series that *user* may see by primary key of the reporter and latest state.

    The state is that of the newest run that was not skipped, empty if there is no such run. Runs of the last
    seconds may not count yet.
    """
    series = Series.objects.visible_to(user).filter(reporter__in=reporters)
    grouped = visible_groups(user, now)
    if grouped:  # the others are counted
        series = series.filter(pk__in=grouped.without)
    counted = series.order_by().values_list("reporter", "latestrun__state").annotate(Count("pk"))
    latest: dict[int, Counter[str]] = defaultdict(Counter)
    for reporter, state, number in counted:
        latest[reporter][state or ""] += number
    for reporter, letter, number in (
        stored_states(grouped, [each.pk for each in reporters]) if grouped else ()
    ):
        latest[reporter][LETTERS[letter] if letter else ""] += number
    return latest


def run_counts(
    user: AbstractBaseUser | AnonymousUser, reporters: Sequence[Reporter], now: datetime
) -> Mapping[int, Mapping[str, int]]:
    """Return by primary key of the reporter the ended runs of the last ``OUTCOMES_WINDOW`` by state.

    Runs of series that *user* may see. PostgreSQL counts by series, because grouping by reporter would join
    every run with its series.
    """
    visible = Series.objects.visible_to(user).filter(reporter__in=reporters).order_by()
    reporter_of = dict(visible.values_list("pk", "reporter"))
    recent = Run.objects.ended().filter(slot__gt=now - OUTCOMES_WINDOW, slot__lte=now)
    of_visible = recent.filter(series__in=visible.values("pk")).order_by()
    outcomes: dict[int, Counter[str]] = defaultdict(Counter)
    for series, state, runs in of_visible.values_list("series_id", "state").annotate(Count("pk")):
        outcomes[reporter_of[series]][state] += runs
    return {reporter: _ordered(counts) for reporter, counts in outcomes.items()}


def _ordered(outcomes: Mapping[str, int]) -> dict[str, int]:
    """Return the number of each outcome that occurs, passed first."""
    return {state: outcomes[state] for state in ENDED if state in outcomes}


def _worker_state(heartbeat_at: datetime | None, now: datetime) -> ReporterState:
    if heartbeat_at is None:
        return ReporterState.NEVER_SEEN
    is_silent = now - heartbeat_at > heartbeats.SILENT_AFTER
    return ReporterState.SILENT if is_silent else ReporterState.REPORTING


def _remote_state(row: Reporter, status: ReporterStatus | None, now: datetime) -> ReporterState:
    if not row.is_enrolled:  # type: ignore[attr-defined]  # annotated
        return ReporterState.REVOKED if row.was_enrolled else ReporterState.NOT_ENROLLED  # type: ignore[attr-defined]
    if status is None:
        return ReporterState.NEVER_SEEN
    if now - status.seen_at > SILENT_AFTER:
        return ReporterState.SILENT
    if status.policy_status == PolicyStatus.UNREADABLE:
        return ReporterState.POLICY_UNREADABLE
    return ReporterState.REPORTING
