"""The state of all reporters: what each said last, its series and the outcomes of its runs.

The number of queries does not depend on the number of reporters.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import Count, Exists, OuterRef

from monitor.fleet.exchange import EXCHANGE_SECONDS
from monitor.ledger import heartbeats
from monitor.models import Alert, Heartbeat, Hold, Reporter, ReporterKey, ReporterStatus, Run, Series
from monitor.models.hold import HoldKind
from monitor.models.reporter import PolicyStatus
from monitor.models.run import ENDED
from reporters.remote import archive

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.reporter import ReporterQuerySet

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
        seen_at: the last exchange; of a Celery worker, its last heartbeat.
        status: None for a Celery worker, and before the first exchange.
        series: the number of series that the user may see.
        outcomes: ended runs of these series in the last ``OUTCOMES_WINDOW``, by state.
        held: the reason of a hold of the reporter; empty if it is not held.
        alerts: the number of open alerts about the reporter.
    """

    reporter: Reporter
    state: ReporterState
    seen_at: datetime | None
    status: ReporterStatus | None
    series: int
    outcomes: Mapping[str, int] = field(default_factory=dict)
    held: str = ""
    alerts: int = 0

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


@functools.cache
def server_archive_sha256() -> str:
    """Return the digest of the reporter that ``make reporter`` writes from the sources of this server."""
    return archive.digest(archive.build())


def list_reporters(
    reporters: ReporterQuerySet, user: AbstractBaseUser | AnonymousUser, now: datetime
) -> list[ReporterSummary]:
    """Return *reporters*, the worst state first, with the series and runs that *user* may see."""
    active_keys = ReporterKey.objects.active().filter(reporter=OuterRef("pk"))
    all_keys = ReporterKey.objects.filter(reporter=OuterRef("pk"))
    rows = list(
        reporters.select_related("site", "status")
        .annotate(is_enrolled=Exists(active_keys), was_enrolled=Exists(all_keys))
        .order_by("name")
    )
    seen = dict(Heartbeat.objects.values_list("name", "seen_at"))
    series, outcomes = _series_and_outcomes(rows, user, now)
    names = [row.name for row in rows]
    holds = {
        hold.name: hold.reason for hold in Hold.objects.at(now).filter(kind=HoldKind.REPORTER, name__in=names)
    }
    alerts = Counter(Alert.objects.open().filter(reporter__in=rows).values_list("reporter", flat=True))
    summaries = [
        _summary(
            row, seen.get(row.component), now, len(series[row.pk]), dict(outcomes[row.pk]), holds, alerts
        )
        for row in rows
    ]
    return sorted(summaries, key=lambda summary: (_ORDER[summary.state], summary.name))


def _summary(
    row: Reporter,
    heartbeat_at: datetime | None,
    now: datetime,
    series: int,
    outcomes: Mapping[str, int],
    holds: Mapping[str, str],
    alerts: Mapping[int, int],
) -> ReporterSummary:
    status: ReporterStatus | None = getattr(row, "status", None)
    seen_at = (status.seen_at if status else None) if row.is_remote else heartbeat_at
    state = _remote_state(row, status, now) if row.is_remote else _worker_state(heartbeat_at, now)
    return ReporterSummary(
        row,
        state,
        seen_at,
        status,
        series,
        outcomes,
        holds.get(row.name, ""),
        alerts.get(row.pk, 0),
    )


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


def _series_and_outcomes(
    rows: Iterable[Reporter], user: AbstractBaseUser | AnonymousUser, now: datetime
) -> tuple[Mapping[int, list[int]], Mapping[int, Counter[str]]]:
    """Return the visible series of each reporter, and the outcomes of their runs, by its primary key."""
    visible = Series.objects.visible_to(user).filter(reporter__in=[row.pk for row in rows])
    reporter_of = dict(visible.order_by().values_list("pk", "reporter_id"))
    series: dict[int, list[int]] = defaultdict(list)
    for pk, reporter in reporter_of.items():
        series[reporter].append(pk)
    # Grouped by series, not by reporter: PostgreSQL then counts without a join.
    ended = Run.objects.filter(slot__gt=now - OUTCOMES_WINDOW, slot__lte=now, state__in=ENDED)
    if len(series) == 1:  # the page of one reporter
        ended = ended.filter(series__in=list(reporter_of))
    counts = ended.order_by().values_list("series_id", "state").annotate(runs=Count("pk"))
    outcomes: dict[int, Counter[str]] = defaultdict(Counter)
    for pk, state, runs in counts:
        if pk in reporter_of:
            outcomes[reporter_of[pk]][state] += runs
    return series, outcomes
