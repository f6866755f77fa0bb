"""What admission is told: who wants to begin, what is under way, and what limits there are."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Sum

from monitor.ledger import heartbeats, maintenance
from monitor.ledger.admission import (
    ActiveHold,
    AdmissionContext,
    Budget,
    BudgetUsed,
    Demand,
    DueRun,
    LeaderRun,
)
from monitor.models import Binding, Hold, Reporter, Run, Series, Site, Usage
from monitor.models.run import PLANNED, SCHEDULE
from monitor.models.series import Follows

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime


def load_context(now: datetime) -> AdmissionContext:
    """What is known at *now*. Only true while nobody else claims."""
    under_way = list(Run.objects.in_flight().order_by().values_list("series_id", flat=True))
    demands = load_demands(under_way)
    sites, reporters = list(Site.objects.all()), list(Reporter.objects.all())
    silent = heartbeats.silent_components(now)
    budgets = {site.pk: budget for site in sites if (budget := _budget(site)) != Budget()}
    spent = _spent(budgets, now) if budgets else {}
    return AdmissionContext(
        now=now,
        in_flight=[demands[series] for series in under_way],
        reporter_runs={one.name: one.capacity for one in reporters},
        site_runs={site.name: site.runs_at_once for site in sites if site.runs_at_once is not None},
        windows=maintenance.open_windows(now),
        budgets={site.name: budgets[site.pk] for site in sites if site.pk in budgets},
        spent={site.name: spent[site.pk] for site in sites if site.pk in spent},
        holds=_holds(now),
        silent_reporters=frozenset(one.name for one in reporters if one.component in silent),
    )


def _budget(site: Site) -> Budget:
    return Budget(site.runs_per_day, site.bytes_per_day, site.cpu_hours_per_day)


def _spent(sites: Iterable[int], now: datetime) -> dict[int, BudgetUsed]:
    """By the key of each of *sites*. Answered from an index alone, since it is asked at every tick."""
    used = Usage.objects.on_day_of(now).filter(site__in=list(sites)).order_by()
    sums = used.values_list("site").annotate(runs=Count("*"), moved=Sum("bytes"), computed=Sum("cpu_seconds"))
    return {
        site: BudgetUsed(runs, int(size_bytes or 0), (seconds or 0.0) / 3600)
        for site, runs, size_bytes, seconds in sums
    }


def load_due_runs(runs: Sequence[Run]) -> list[DueRun]:
    """*runs* as candidates, in their order."""
    demands = load_demands(run.series_id for run in runs)
    leaders = _leaders(runs)
    return [
        DueRun(
            run=run.pk,
            demand=demands[run.series_id],
            due_at=run.due_at,
            asked=run.trigger not in PLANNED,
            again=run.attempt > 0,
            leader=leaders.get(run.pk),
            forced=run.forced,
        )
        for run in runs
    ]


def _leaders(runs: Sequence[Run]) -> dict[uuid.UUID, LeaderRun]:
    """By run, what it is to begin after."""
    planned = [run for run in runs if run.trigger == SCHEDULE]
    following = Series.objects.filter(pk__in={run.series_id for run in planned}, follows=Follows.AFTER)
    followers = {one.pk: one for one in following.select_related("leader")}
    slots = {run.slot for run in planned if run.series_id in followers}
    led = Run.objects.filter(trigger=SCHEDULE, series__followers__in=followers, slot__in=slots)
    before = {(run.series_id, run.slot): run for run in led} if followers else {}
    return {
        run.pk: _leader(followers[run.series_id], run.slot, before)
        for run in planned
        if run.series_id in followers
    }


def _leader(follower: Series, slot: datetime, before: Mapping[tuple[int, datetime], Run]) -> LeaderRun:
    delay = timedelta(seconds=follower.delay_seconds)
    run = before.get((follower.leader_id, slot)) if follower.leader_id else None
    name = str(follower.leader)
    if run is None:
        return LeaderRun(name, delay, ran=False, state="it has no such slot any more")
    if run.is_pending:
        return LeaderRun(name, delay, ran=None, state=run.state)
    return LeaderRun(name, delay, ran=run.ended_at is not None, state=run.state, ended_at=run.ended_at)


def load_demands(series: Iterable[int]) -> dict[int, Demand]:
    """What a run takes, by the key of its series."""
    keys = set(series)
    sites: dict[int, set[str]] = {key: set() for key in keys}
    bound = Binding.objects.filter(series__in=keys).order_by()
    for key, site in bound.values_list("series_id", "resource__site__name").distinct():
        sites[key].add(site)
    told = ("pk", "name", "suite__name", "reporter__name", "exclusive", "exclusive_wait_seconds")
    return {
        key: Demand(name, suite, reporter, frozenset(sites[key]), exclusive, timedelta(seconds=wait_seconds))
        for key, name, suite, reporter, exclusive, wait_seconds in Series.objects.filter(pk__in=keys)
        .order_by()
        .values_list(*told)
    }


def _holds(now: datetime) -> tuple[ActiveHold, ...]:
    standing = Hold.objects.at(now)
    return tuple(
        ActiveHold(one.kind, one.name, one.began_at, one.reason)  # type: ignore[arg-type]  # its choices are these
        for one in standing
    )
