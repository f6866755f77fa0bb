"""The input of the admission rules, their verdicts, and the combination of several verdicts."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from monitor.runs.maintenance.times import OpenWindow


@dataclass(frozen=True)
class Demand:
    """The needs of every run of a series; *sites* are the sites of all resources of the series."""

    series: str
    suite: str
    reporter: str
    sites: frozenset[str]
    exclusive: Literal["", "link", "site"] = ""
    exclusive_wait: timedelta = timedelta(minutes=15)


@dataclass(frozen=True)
class LeaderRun:
    """The run that another run follows: the follower starts *delay* after the leader's run has ended.

    *ran* is None while the leader's run is pending. It is False if the run ended without running, for example
    as missed; *state* says how.
    """

    delay: timedelta
    ran: bool | None
    state: str
    ended_at: datetime | None = None


@dataclass(frozen=True)
class DueRun:
    """A run that is due.

    Attributes:
        is_requested: a user requested the run; no schedule contains it.
        is_reclaimed: the run was claimed before, and the earlier attempt did not report.
        leader: the leader's run, if the series of this run runs after another series.
        is_forced: the user's request overrides holds.
    """

    run: uuid.UUID
    demand: Demand
    due_at: datetime
    is_requested: bool = False
    is_reclaimed: bool = False
    leader: LeaderRun | None = None
    is_forced: bool = False


@dataclass(frozen=True)
class Budget:
    """The daily limits of a site, from midnight to midnight UTC; None is unlimited."""

    runs: int | None = None
    bytes: int | None = None
    cpu_hours: float | None = None


@dataclass(frozen=True)
class BudgetUsed:
    """The usage of a site by runs that started today (UTC) and have ended."""

    runs: int = 0
    bytes: int = 0
    cpu_hours: float = 0.0


@dataclass(frozen=True)
class ActiveHold:
    """A hold in force; *kind* and *name* identify its scope."""

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
    """The state of the grid at *now*. ``admit`` adds an admitted run to the runs in flight.

    Attributes:
        reporter_runs: the maximum of runs in flight, by reporter.
        site_runs: the maximum of runs in flight, by site; only sites with a limit.
        budgets: the budget by site; only sites with a budget.
        used: today's usage by site; only sites with a budget and a run today.
    """

    now: datetime
    in_flight: InitVar[Iterable[Demand]] = ()
    reporter_runs: Mapping[str, int] = field(default_factory=dict)
    site_runs: Mapping[str, int] = field(default_factory=dict)
    windows: tuple[OpenWindow, ...] = ()
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    used: Mapping[str, BudgetUsed] = field(default_factory=dict)
    holds: tuple[ActiveHold, ...] = ()
    silent_reporters: frozenset[str] = frozenset()

    def __post_init__(self, in_flight: Iterable[Demand]) -> None:
        self._of_series: Counter[str] = Counter()
        self._of_reporter: Counter[str] = Counter()
        self._at_site: Counter[str] = Counter()
        self.exclusive_in_flight: list[Demand] = []
        for demand in in_flight:
            self.admit(demand)

    def admit(self, demand: Demand) -> None:
        """Count a run with this *demand* as in flight."""
        self._of_series[demand.series] += 1
        self._of_reporter[demand.reporter] += 1
        self._at_site.update(demand.sites)
        if demand.exclusive:
            self.exclusive_in_flight.append(demand)

    def runs_of_series(self, series: str) -> int:
        """Return the number of runs of *series* in flight."""
        return self._of_series[series]

    def runs_of_reporter(self, reporter: str) -> int:
        """Return the number of runs of *reporter* in flight."""
        return self._of_reporter[reporter]

    def runs_at_site(self, site: str) -> int:
        """Return the number of runs in flight that use *site*."""
        return self._at_site[site]


@dataclass(frozen=True)
class Wait:
    """The run stays due. It waits until *until* at the latest; None: until its grace time is over."""

    reason: str
    until: datetime | None = None


@dataclass(frozen=True)
class Skip:
    """The run ends as ``skipped``."""

    reason: str


Verdict = Wait | Skip | None  # None: the rule does not object
Rule = Callable[[DueRun, AdmissionContext], Verdict]


def decide(
    runs: Iterable[DueRun], context: AdmissionContext, rules: Iterable[Rule]
) -> Iterator[tuple[DueRun, Verdict]]:
    """Yield each of *runs* with its verdict, in order: earlier runs get the free capacity first.

    Skip takes precedence over Wait. Of several verdicts of the same kind, the verdict of the first rule
    counts.
    """
    rules = tuple(rules)
    for run in runs:
        objections = [verdict for rule in rules if (verdict := rule(run, context)) is not None]
        skips = (verdict for verdict in objections if isinstance(verdict, Skip))
        verdict = next(skips, objections[0] if objections else None)
        if verdict is None:
            context.admit(run.demand)
        yield run, verdict
