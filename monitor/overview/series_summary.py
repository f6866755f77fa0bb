"""Every series in one line: its last runs, its totals, its forecast, what it does now.

The number of queries does not depend on how many series there are.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, OuterRef, Subquery, Value
from django.db.models.functions import JSONObject

from monitor.depot.samples.read import newest_values
from monitor.forecasts.defaults import LEVEL
from monitor.ledger.holds import covering_holds
from monitor.models import Alert, ForecastState, Hold, Run, Series
from monitor.models.run import State
from monitor.models.series import SeriesQuerySet
from monitor.overview.latest import NOTHING_YET, last_runs, recent
from monitor.series.segments import current_metrics

SPARKLINE_VALUES = 30
HEADLINE_METRIC = "total.seconds"


@dataclass(frozen=True)
class Outlook:
    """The newest forecast of a series' total, in seconds."""

    median: float
    lower: float
    upper: float
    level: float
    n: int


@dataclass(frozen=True)
class Current:
    """A run that is under way."""

    run: uuid.UUID
    state: str
    stage: str
    since: datetime | None


@dataclass(frozen=True)
class Last:
    """The newest run of a series that tells something: any but a skipped one."""

    run: uuid.UUID
    state: str
    stage: str
    reason: str
    failed_resource: str
    at: datetime

    @classmethod
    def of(cls, run: Run) -> Last:
        return cls(run.pk, run.state, run.stage, run.reason, run.failed_resource, run.ended_at or run.slot)


@dataclass(frozen=True)
class Tick:
    """One run in a trend."""

    state: str
    failed_resource: str


@dataclass(frozen=True)
class Column:
    """One series. *trend* and *totals* (seconds) are oldest first, *totals* of its current segment alone.

    *held* says by whom and why, if it is; *alerts* counts those that are open.
    """

    name: str
    probe: str
    enabled: bool
    trend: Sequence[Tick]
    last: Last | None
    totals: Sequence[float]
    outlook: Outlook | None
    current: Current | None
    next_slot: datetime | None
    held: str
    alerts: int


def columns(visible: SeriesQuerySet, now: datetime, holds: Sequence[Hold]) -> list[Column]:
    """One for every series in *visible*, by name; *holds* are those in force."""
    found = list(_series(visible))
    newest = recent(visible)
    last = last_runs(newest)
    headline = {row["segment__series__name"]: row for row in _headlines(visible)}
    current = _current(visible)
    next_slots = _next_slots(visible, now)
    held = covering_holds((row["pk"] for row in found), holds)
    return [
        Column(
            name=row["name"],
            probe=row["probe"],
            enabled=row["enabled"],
            trend=[Tick(*one) for one in newest.get(row["pk"], NOTHING_YET).trend],
            last=Last.of(last[row["pk"]]) if row["pk"] in last else None,
            totals=headline.get(row["name"], {}).get("newest", [])[::-1],
            outlook=_outlook(headline.get(row["name"], {}).get("outlook")),
            current=current.get(row["name"]),
            next_slot=next_slots.get(row["name"]),
            held=held[row["pk"]].reason if row["pk"] in held else "",
            alerts=row["open_alerts"] or 0,
        )
        for row in found
    ]


def _series(visible: SeriesQuerySet) -> Any:
    alerts = Alert.objects.open().filter(series=OuterRef("pk")).order_by().values("series")
    return Series.objects.filter(pk__in=visible.values("pk")).values(
        "pk",
        "name",
        "probe",
        "enabled",
        open_alerts=Subquery(alerts.annotate(many=Count("pk")).values("many")),
    )


def _headlines(visible: SeriesQuerySet) -> Any:
    told = {name: name for name in ("median", "lower", "upper", "n")}
    numbers = JSONObject(**told, level=Value(LEVEL))
    newest = ForecastState.objects.filter(metric=OuterRef("pk"), mean__isnull=False)
    return (
        current_metrics(visible)
        .filter(name=HEADLINE_METRIC)
        .values(
            "segment__series__name",
            newest=newest_values(SPARKLINE_VALUES),
            outlook=Subquery(newest.values(numbers=numbers)),
        )
    )


def _outlook(numbers: dict[str, Any] | None) -> Outlook | None:
    return Outlook(**numbers) if numbers else None


def _current(visible: SeriesQuerySet) -> dict[str, Current]:
    underway = Run.objects.in_flight().filter(series__in=visible).select_related("series")
    return {run.series.name: Current(run.pk, run.state, run.stage, run.started_at) for run in underway}


def _next_slots(visible: SeriesQuerySet, now: datetime) -> dict[str, datetime]:
    coming = Run.objects.filter(series__in=visible, state=State.EXPECTED, slot__gt=now, series__enabled=True)
    return dict(coming.order_by().values_list("series__name").annotate(Min("slot")))
