"""Load what the admission rules need to know: the due runs, the runs in flight, and the limits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Sum

from monitor.models import Binding, Hold, Reporter, Run, Series, Site, Usage
from monitor.models.run import PLANNED, SCHEDULE
from monitor.models.series import Follows
from monitor.runs.ledger import heartbeats
from monitor.runs.ledger.admission import (
    ActiveHold,
    AdmissionContext,
    Budget,
    BudgetUsed,
    Demand,
    DueRun,
    LeaderRun,
)
from monitor.runs.ledger.admission.rules.budget import used_up_limits
from monitor.runs.maintenance import windows as maintenance

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime


def load_context(now: datetime) -> AdmissionContext:
    """Return the state of the grid at *now*; it stays valid while the caller holds ``AdvisoryLock.CLAIM``."""
    in_flight = list(Run.objects.by_reporters().in_flight().order_by().values_list("series_id", flat=True))
    demands = load_demands(in_flight)
    sites, reporters = list(Site.objects.all()), list(Reporter.objects.all())
    silent = heartbeats.silent_components(now)
    budgets = {site.pk: budget for site in sites if (budget := _budget(site)) != Budget()}
    used = _budget_used(budgets, now) if budgets else {}
    return AdmissionContext(
        now=now,
        in_flight=[demands[series] for series in in_flight],
        reporter_runs={reporter.name: reporter.capacity for reporter in reporters},
        site_runs={site.name: site.runs_at_once for site in sites if site.runs_at_once is not None},
        windows=maintenance.open_windows(now),
        budgets={site.name: budgets[site.pk] for site in sites if site.pk in budgets},
        used={site.name: used[site.pk] for site in sites if site.pk in used},
        holds=tuple(
            ActiveHold(hold.kind, hold.name, hold.began_at, hold.reason)  # type: ignore[arg-type]  # a HoldKind
            for hold in Hold.objects.at(now)
        ),
        silent_reporters=frozenset(reporter.name for reporter in reporters if reporter.component in silent),
    )


def used_up_sites(now: datetime) -> set[str]:
    """Return the names of the sites whose budget of the day of *now* (UTC) is used up."""
    budgets = {site: budget for site in Site.objects.all() if (budget := _budget(site)) != Budget()}
    used = _budget_used([site.pk for site in budgets], now) if budgets else {}
    nothing = BudgetUsed()
    return {
        site.name
        for site, budget in budgets.items()
        if any(used_up_limits(budget, used.get(site.pk, nothing), 0))
    }


def _budget(site: Site) -> Budget:
    return Budget(site.runs_per_day, site.bytes_per_day, site.cpu_hours_per_day)


def _budget_used(sites: Iterable[int], now: datetime) -> dict[int, BudgetUsed]:
    """Return today's usage by site, for *sites* (primary keys).

    The statement is an index-only scan, because every tick executes it.
    """
    usage = Usage.objects.on_day_of(now).filter(site__in=list(sites)).order_by()
    sums = usage.values_list("site").annotate(
        runs=Count("*"), moved=Sum("bytes"), computed=Sum("cpu_seconds")
    )
    return {
        site: BudgetUsed(runs, int(size_bytes or 0), (cpu_seconds or 0.0) / 3600)
        for site, runs, size_bytes, cpu_seconds in sums
    }


def load_due_runs(runs: Sequence[Run]) -> list[DueRun]:
    """Convert *runs* to the input of the admission rules, in the same order."""
    demands = load_demands(run.series_id for run in runs)
    leaders = _leaders(runs)
    return [
        DueRun(
            run=run.pk,
            demand=demands[run.series_id],
            due_at=run.due_at,
            is_requested=run.trigger not in PLANNED,
            is_reclaimed=run.attempt > 0,
            leader=leaders.get(run.pk),
            is_forced=run.forced,
        )
        for run in runs
    ]


def _leaders(runs: Sequence[Run]) -> dict[uuid.UUID, LeaderRun]:
    """Return the leader's run for each of *runs* whose series has a leader, by id of the follower's run."""
    planned = [run for run in runs if run.trigger == SCHEDULE]
    following = Series.objects.filter(pk__in={run.series_id for run in planned}, follows=Follows.AFTER)
    followers = {series.pk: series for series in following.select_related("leader")}
    slots = {run.slot for run in planned if run.series_id in followers}
    led = Run.objects.filter(trigger=SCHEDULE, series__followers__in=followers, slot__in=slots)
    leader_runs = {(run.series_id, run.slot): run for run in led} if followers else {}
    return {
        run.pk: _leader(followers[run.series_id], run.slot, leader_runs)
        for run in planned
        if run.series_id in followers
    }


def _leader(follower: Series, slot: datetime, leader_runs: Mapping[tuple[int, datetime], Run]) -> LeaderRun:
    delay = timedelta(seconds=follower.delay_seconds)
    run = leader_runs.get((follower.leader_id, slot)) if follower.leader_id else None
    if run is None:
        return LeaderRun(delay, ran=False, state="its schedule no longer has this slot")
    if run.is_pending:
        return LeaderRun(delay, ran=None, state=run.state)
    return LeaderRun(delay, ran=run.ended_at is not None, state=run.state, ended_at=run.ended_at)


def load_demands(series: Iterable[int]) -> dict[int, Demand]:
    """Return the demand of a run of each of *series*, by primary key of the series."""
    keys = set(series)
    sites: dict[int, set[str]] = {key: set() for key in keys}
    bindings = Binding.objects.filter(series__in=keys).order_by()
    for key, site in bindings.values_list("series_id", "resource__site__name").distinct():
        sites[key].add(site)
    columns = ("pk", "name", "suite__name", "reporter__name", "exclusive", "exclusive_wait_seconds")
    rows = Series.objects.filter(pk__in=keys).order_by().values_list(*columns)
    return {
        key: Demand(name, suite, reporter, frozenset(sites[key]), exclusive, timedelta(seconds=wait_seconds))
        for key, name, suite, reporter, exclusive, wait_seconds in rows
    }
