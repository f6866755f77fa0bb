"""What rules are asked, what they know, and how their answers become one."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal


@dataclass(frozen=True)
class Demand:
    """What every run of a series takes; its sites are those of all its resources."""

    series: str
    suite: str
    reporter: str
    sites: frozenset[str]
    exclusive: Literal["", "link", "site"] = ""
    exclusive_wait: timedelta = timedelta(minutes=15)


@dataclass(frozen=True)
class LeaderRun:
    """The run after which another is to begin, *delay* later. *ran* is None until it has ended, *state* says
    how; *ended_at* is known where it ran."""

    series: str
    delay: timedelta
    ran: bool | None
    state: str
    ended_at: datetime | None = None


@dataclass(frozen=True)
class DueRun:
    """A run that is due. *asked*: somebody wants it, it is no slot of a schedule. *forced*: and in spite of
    holds. *again*: it was claimed before, and what became of that is not known. *leader* is that of a slot
    that follows one."""

    run: uuid.UUID
    demand: Demand
    due_at: datetime
    asked: bool = False
    again: bool = False
    leader: LeaderRun | None = None
    forced: bool = False


@dataclass(frozen=True)
class OpenWindow:
    """A time in which nothing is begun at *sites* (everywhere, where there are none), and why."""

    title: str
    starts_at: datetime
    ends_at: datetime
    sites: frozenset[str] = frozenset()

    def covers(self, sites: Collection[str]) -> bool:
        return not self.sites or not self.sites.isdisjoint(sites)

    @property
    def reason(self) -> str:
        """Why a slot in it is skipped: ``maintenance: new disks, until 2026-03-01 13:00 UTC``."""
        return f"maintenance: {self.title}, until {self.ends_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True)
class Budget:
    """What a site gives for a day, from midnight to midnight UTC; of what is None there is no end."""

    runs: int | None = None
    bytes: int | None = None
    cpu_hours: float | None = None


@dataclass(frozen=True)
class BudgetUsed:
    """What runs that began today have used at a site. Those in flight are not among them."""

    runs: int = 0
    bytes: int = 0
    cpu_hours: float = 0.0


@dataclass(frozen=True)
class ActiveHold:
    """Nothing of *kind* and *name* begins since *began_at*, for a *reason*."""

    kind: Literal["series", "suite", "site", "reporter"]
    name: str
    began_at: datetime
    reason: str

    def covers(self, demand: Demand) -> bool:
        if self.kind == "site":
            return self.name in demand.sites
        return bool(self.name == getattr(demand, self.kind))


@dataclass
class AdmissionContext:
    """What is known at *now*. What is in flight grows with every run that is let in."""

    now: datetime
    in_flight: InitVar[Iterable[Demand]] = ()
    reporter_runs: Mapping[str, int] = field(default_factory=dict)  # reporter -> how many it has at once
    site_runs: Mapping[str, int] = field(default_factory=dict)  # only sites with a limit
    windows: tuple[OpenWindow, ...] = ()
    budgets: Mapping[str, Budget] = field(default_factory=dict)  # only sites with one
    spent: Mapping[str, BudgetUsed] = field(default_factory=dict)  # only sites with a budget and a run today
    holds: tuple[ActiveHold, ...] = ()
    silent_reporters: frozenset[str] = frozenset()

    def __post_init__(self, in_flight: Iterable[Demand]) -> None:
        self._of_series: Counter[str] = Counter()
        self._of_reporter: Counter[str] = Counter()
        self._at_site: Counter[str] = Counter()
        self.exclusive_in_flight: list[Demand] = []
        for demand in in_flight:
            self.let_in(demand)

    def let_in(self, demand: Demand) -> None:
        """From now on a run with this *demand* is in flight, too."""
        self._of_series[demand.series] += 1
        self._of_reporter[demand.reporter] += 1
        self._at_site.update(demand.sites)
        if demand.exclusive:
            self.exclusive_in_flight.append(demand)

    def runs_of_series(self, series: str) -> int:
        """How many runs of *series* are in flight."""
        return self._of_series[series]

    def runs_of_reporter(self, reporter: str) -> int:
        """How many runs *reporter* has in flight."""
        return self._of_reporter[reporter]

    def runs_at_site(self, site: str) -> int:
        """In how many runs in flight *site* takes part."""
        return self._at_site[site]


@dataclass(frozen=True)
class Wait:
    """Not yet. With *until*: not after that either; the slot is kept open till then."""

    reason: str
    until: datetime | None = None


@dataclass(frozen=True)
class Skip:
    """Not at all: the slot ends as ``skipped``."""

    reason: str


Verdict = Wait | Skip | None  # None: nothing against it
Rule = Callable[[DueRun, AdmissionContext], Verdict]


def decide(
    candidates: Iterable[DueRun], situation: AdmissionContext, rules: Iterable[Rule]
) -> Iterator[tuple[DueRun, Verdict]]:
    """What becomes of each of *candidates*, in their order: who comes first takes the room.

    A rule that skips weighs more than one that lets wait; of several that do the same the first speaks.
    """
    rules = tuple(rules)
    for candidate in candidates:
        verdict = _verdict([rule(candidate, situation) for rule in rules])
        if verdict is None:
            situation.let_in(candidate.demand)
        yield candidate, verdict


def _verdict(verdicts: list[Verdict]) -> Verdict:
    against = [verdict for verdict in verdicts if verdict is not None]
    return next((one for one in against if isinstance(one, Skip)), against[0] if against else None)
