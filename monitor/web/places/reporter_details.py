"""Details of one reporter: assignment, chains, keys, series and latest runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce

from monitor.models import Chain, ChainRecord, ConflictCount, Reporter, Run, Series
from monitor.models.run import State
from reporters.remote.policy.site_policy import PREFIX as POLICY_PREFIX

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

RECENT = timedelta(days=7)
LATEST_RUNS = 20
LATEST_CHAINS = 20
LATEST_KEYS = 10
MOST_MESSAGES = 50
MESSAGE_CHARACTERS = 2000
YEARS = range(1900, 2200)  # of times that every zone can show


@dataclass(frozen=True)
class ChainState:
    """A chain as far as the depot has received it."""

    chain: Chain
    received: int

    @property
    def declared(self) -> int:
        """The number of records that the agent has written; some arrive before the exchange declares them."""
        return max(self.chain.declared_next, self.received)

    @property
    def outstanding(self) -> int:
        """The number of records that were declared and have not been received."""
        return self.declared - self.received


@dataclass(frozen=True)
class ReporterMessage:
    """A message of an agent; the agent may have sent any text."""

    at: str
    level: str
    text: str

    @property
    def time(self) -> datetime | None:
        """The time; None if the agent sent none that every zone can show."""
        try:
            sent = datetime.fromisoformat(self.at).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        return sent if sent.year in YEARS else None


@dataclass(frozen=True)
class AssignmentState:
    """The newest assignment of a reporter, and the version that it says is in force; 0: none."""

    newest: int
    issued_at: datetime | None
    in_force: int
    error: str

    @property
    def is_current(self) -> bool:
        return self.newest == self.in_force


def chain_states(reporter: Reporter) -> list[ChainState]:
    """Return the newest chains of *reporter*."""
    records = ChainRecord.objects.filter(chain=OuterRef("pk")).order_by().values("chain")
    received = Coalesce(Subquery(records.annotate(count=Count("sequence")).values("count")), 0)
    rows = reporter.chains.annotate(received=received).order_by("-first_seen_at", "-pk")[:LATEST_CHAINS]
    return [ChainState(row, row.received) for row in rows]


def assignment_state(reporter: Reporter) -> AssignmentState:
    newest = reporter.assignments.defer("document").first()
    status = getattr(reporter, "status", None)
    return AssignmentState(
        newest.version if newest else 0,
        newest.issued_at if newest else None,
        status.assignment_version if status else 0,
        status.assignment_error if status else "",
    )


def newest_messages(messages: Any) -> list[ReporterMessage]:
    """Return *messages* of a status, newest first; entries that are no messages are left out."""
    entries = messages if isinstance(messages, list) else []
    shown = [entry for entry in entries if isinstance(entry, Mapping)][-MOST_MESSAGES:]
    return [
        ReporterMessage(*(str(entry.get(key, ""))[:MESSAGE_CHARACTERS] for key in ("at", "level", "text")))
        for entry in reversed(shown)
    ]


def conflict_count(reporter: Reporter) -> ConflictCount | None:
    """Return how many reports of *reporter* conflicted with a stored one, ever; None if none did."""
    return ConflictCount.objects.filter(reporter=reporter.name).first()


def visible_series(reporter: Reporter, user: AbstractBaseUser | AnonymousUser) -> list[Series]:
    return list(Series.objects.visible_to(user).filter(reporter=reporter).order_by("sort_name"))


def latest_runs(series: Sequence[Series], now: datetime) -> list[Run]:
    """Return the newest ended runs of *series* of the last ``RECENT``."""
    ended = Run.objects.ended().filter(series__in=series, slot__gt=now - RECENT, slot__lte=now)
    return list(ended.select_related("series").order_by("-slot")[:LATEST_RUNS])


def slots_skipped_by_policy(series: Sequence[Series], now: datetime) -> list[Run]:
    """Return the newest slots of *series* of the last ``RECENT`` that the site policy refused."""
    skipped = Run.objects.filter(series__in=series, slot__gt=now - RECENT, slot__lte=now, state=State.SKIPPED)
    by_policy = skipped.filter(reason__startswith=POLICY_PREFIX)
    return list(by_policy.select_related("series").order_by("-slot")[:LATEST_RUNS])
