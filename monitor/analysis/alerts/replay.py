"""How many alerts a condition would have opened: the condition judges stored runs as they ended.

A pure function replays the runs of one series; the number of runs that are read is bounded.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db.models import Q

from monitor.analysis.alerts.conditions.base import (
    COUNTED,
    REPORTED_HERE,
    UNREPORTED,
    AlertCondition,
    ConditionInput,
    RunOutcome,
)
from monitor.models import Run
from monitor.models.run import State
from monitor.models.series import SeriesQuerySet

DAYS = 30
MOST_RUNS = 50_000  # that are read; further series are not replayed
MOST_LISTED = 10


@dataclass(frozen=True)
class StoredRun:
    """A run of the series with the key *series*, and when it ended; None: not yet."""

    series: int
    outcome: RunOutcome
    due_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class Opening:
    """An alert that would have been opened."""

    series: str
    at: datetime
    text: str


@dataclass(frozen=True)
class RuleReplay:
    """The alerts that a rule would have opened in the last ``DAYS``.

    *replayed* of *watched* series were judged, by *runs* runs; *newest* are the last alerts, newest first.
    """

    alerts: int
    series: int
    watched: int
    replayed: int
    runs: int
    newest: Sequence[Opening]


def replay_rule(
    watched: SeriesQuerySet, condition: AlertCondition, now: datetime, most: int = MOST_RUNS
) -> RuleReplay:
    """Replay *condition* for the series *watched*, by name, until *most* runs are read."""
    names = dict(watched.order_by("sort_name").values_list("pk", "name"))
    by_series, is_complete = _stored(names, now, most)
    openings = [
        Opening(names[key], at, text) for key, runs in by_series for at, text in replay(condition, runs, now)
    ]
    openings.sort(key=attrgetter("at"), reverse=True)
    return RuleReplay(
        alerts=len(openings),
        series=len({opening.series for opening in openings}),
        watched=len(names),
        replayed=len(names) if is_complete else len(by_series),
        runs=sum(len(runs) for _, runs in by_series),
        newest=openings[:MOST_LISTED],
    )


def watched_series(rows: SeriesQuerySet, watches: Mapping[str, Any]) -> SeriesQuerySet:
    """Return the enabled series of *rows* that a rule with *watches*, as in a grid file, watches."""
    rows = rows.filter(enabled=True)
    if watches.get("everything"):
        return rows
    is_watched = (
        Q(suite__name__in=watches.get("suites", ()))
        | Q(name__in=watches.get("series", ()))
        | Q(probe__in=watches.get("probes", ()))
        | Q(reporter__name__in=watches.get("reporters", ()))
        | Q(bindings__resource__site__name__in=watches.get("sites", ()))
    )
    return rows.filter(is_watched).distinct()


def replay(
    condition: AlertCondition, runs: Sequence[StoredRun], until: datetime
) -> Iterator[tuple[datetime, str]]:
    """Yield time and text of each alert of a series; *runs* are in the order of their slots. Pure."""
    state, is_open = _SeriesState(runs), False
    ends = sorted(
        (run.ended_at, index) for index, run in enumerate(runs) if run.ended_at and run.ended_at <= until
    )
    times = [ended_at for ended_at, _ in ends]  # sorted, hence a heap
    number = 0
    previous: datetime | None = None
    while times:
        at = heapq.heappop(times)
        if at == previous:
            continue
        previous = at
        while number < len(ends) and ends[number][0] <= at:
            state.end(ends[number][1])
            number += 1
        verdict = condition.judge(state.input_at(condition.runs_needed), at)
        if verdict.is_open and not is_open:
            yield at, verdict.text
        is_open = verdict.is_open
        if verdict.recheck_at is not None and at < verdict.recheck_at <= until:
            heapq.heappush(times, verdict.recheck_at)


@dataclass
class _SeriesState:
    """What was known of a series at a time: which of *runs* had ended."""

    runs: Sequence[StoredRun]
    counted: list[int] = field(default_factory=list)  # indices of ended runs, sorted
    ended: set[int] = field(default_factory=set)
    reported: int = -1  # the index of the newest run that was reported
    first_unknown: int = 0  # no run before it is unreported

    def end(self, index: int) -> None:
        state = self.runs[index].outcome.state
        self.ended.add(index)
        if state in COUNTED:
            insort(self.counted, index)
        if state in REPORTED_HERE:
            self.reported = max(self.reported, index)

    def input_at(self, runs_needed: int) -> ConditionInput:
        newest = [self.runs[index].outcome for index in self.counted[-runs_needed:][::-1]]
        self.first_unknown = max(self.first_unknown, self.reported + 1)
        while self.first_unknown in self.ended and self._is_settled(self.first_unknown):
            self.first_unknown += 1
        if self.first_unknown >= len(self.runs):
            return ConditionInput(newest)
        run = self.runs[self.first_unknown]
        return ConditionInput(newest, run.outcome, run.due_at)

    def _is_settled(self, index: int) -> bool:
        return self.runs[index].outcome.state not in UNREPORTED


def _stored(
    keys: Collection[int], now: datetime, most: int
) -> tuple[list[tuple[int, list[StoredRun]]], bool]:
    """Return the runs of the last ``DAYS`` by series, in the order of names, and whether these are all.

    Of more than *most* runs, those of the last series are left out.
    """
    rows = Run.objects.filter(series__in=keys, slot__gt=now - timedelta(days=DAYS), slot__lte=now)
    columns = ("series", "pk", "slot", "state", "reason", "due_at", "ended_at")
    read = list(rows.order_by("series__sort_name", "slot").values_list(*columns)[: most + 1])
    runs = [
        StoredRun(series, RunOutcome(pk, slot, state, reason), due_at, _end(state, due_at, ended_at))
        for series, pk, slot, state, reason, due_at, ended_at in read
    ]
    by_series = [(key, list(group)) for key, group in groupby(runs, attrgetter("series"))]
    is_complete = len(read) <= most
    return (by_series if is_complete else by_series[:-1]), is_complete


def _end(state: str, due_at: datetime, ended_at: datetime | None) -> datetime | None:
    """Return when a run ended; a run of a state without a time of its end was settled when it was due."""
    return ended_at or (due_at if state in {State.SKIPPED, State.MISSED, State.LOST} else None)
