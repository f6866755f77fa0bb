"""Request runs now, in addition to the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from monitor.depot.access.audit_trail import note
from monitor.models import Hold, Run
from monitor.models.run import PLANNED
from monitor.models.series import REPORTED_PROBE, Series, SeriesQuerySet
from monitor.runs.ledger.free_slots import FreeSlots
from monitor.runs.ledger.holds import InvalidRequest, NotAllowed, RunHeld, checked_reason, covering_holds
from reporters.report import run_id

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.hold import Scope

CLOCKS_DIFFER = timedelta(minutes=1)  # of the hosts that serve requests


@dataclass(frozen=True)
class RequestedRuns:
    """The requested runs, sorted by name of the series; *held* has each skipped series with its hold."""

    runs: Sequence[Run]
    held: Sequence[tuple[Series, Hold]] = ()


@transaction.atomic
def run_now(
    series: Series, *, who: str, why: str = "", force: bool = False, now: datetime | None = None
) -> Run:
    """Return a requested run of *series*: the one that already waits, or a new one that is due at once.

    Works for a disabled series too, unless an agent runs it. While the series runs, the new run waits.

    Raises:
        RunHeld: the series is held and *force* is not set. A forced run ignores the holds in force now.
        InvalidRequest: *why* is invalid, the series was imported, or it is disabled and run by an agent,
            or programs outside of gridcast run it.
    """
    if series.is_imported:
        raise InvalidRequest(f"{series.name} was imported: no reporter can run it")
    if series.is_reported:
        raise InvalidRequest(f"{series.name} is reported from outside: no reporter can run it")
    if series.reporter.is_remote and not series.enabled:
        raise InvalidRequest(f"{series.name} is disabled: the agent of {series.reporter} does not have it")
    slot = now or timezone.now()
    holds = covering_holds([series.pk], Hold.objects.at(slot))
    if holds and not force:
        raise RunHeld(series.name, holds[series.pk])
    trigger = f"asked for by {who}" + (f": {checked_reason(why)}" if why else "")
    (run,) = _request(Series.objects.filter(pk=series.pk), trigger, slot, force=force)
    note("series", series.name, after=f"run requested{f': {why}' if why else ''}")
    return run


@transaction.atomic
def run_all(
    scope: Scope,
    *,
    who: str,
    why: str,
    user: AbstractBaseUser | AnonymousUser | None = None,
    force: bool = False,
    now: datetime | None = None,
) -> RequestedRuns:
    """Request a run of every enabled series of *scope*; with *user*, only of series that *user* may run.

    Held series are left out unless *force* is set.

    Raises:
        RunHeld: all of the series are held.
        NotAllowed: *user* may see series of *scope*, and run none of them.
        InvalidRequest: *scope* has no enabled series that *user* may see, or *why* is invalid.
    """
    slot = now or timezone.now()
    trigger = f"asked for by {who} for the {scope}: {checked_reason(why)}"
    enabled = scope.series().filter(enabled=True).exclude(probe=REPORTED_PROBE)
    visible = enabled.manageable_by(user) if user is not None else enabled
    by_key = {series.pk: series for series in visible.order_by("sort_name")}
    if not by_key and user is not None and enabled.visible_to(user).exists():
        raise NotAllowed(f"your roles do not permit runs of the {scope}")
    if not by_key:
        raise InvalidRequest(f"the {scope} has no enabled series")
    holds = {} if force else covering_holds(by_key, Hold.objects.at(slot))
    free = by_key.keys() - holds.keys()
    if not free:
        raise RunHeld(f"the {scope}", holds[next(iter(by_key))])
    held = [(series, holds[key]) for key, series in by_key.items() if key in holds]
    runs = _request(Series.objects.filter(pk__in=free), trigger, slot, force=force)
    note(scope.kind, scope.name, after=f"{len(runs)} runs requested: {why}")
    return RequestedRuns(runs, held)


def _request(series: SeriesQuerySet, trigger: str, slot: datetime, *, force: bool) -> list[Run]:
    """Return a requested run of each of *series*, sorted by name of the series.

    A requested run that already waits is returned; with *force*, only a forced run. Otherwise a new run is
    inserted at the first free slot at *slot* or later, with *trigger*.
    """
    locked = list(series.select_for_update(no_key=True).order_by("pk"))  # serialises concurrent requests
    due = Run.objects.due(slot + CLOCKS_DIFFER)  # a request that got its time later may have been first
    waiting = due.filter(series__in=locked).exclude(trigger__in=PLANNED)
    if force:
        waiting = waiting.filter(forced=True)
    waiting_runs = {
        series_pk: (run, due) for series_pk, run, due in waiting.values_list("series_id", "pk", "slot")
    }
    lacking = [its for its in locked if its.pk not in waiting_runs]
    free = FreeSlots([(its.pk, slot) for its in lacking])
    created = [_new_run(its, free.next(its.pk, slot), trigger, force=force) for its in lacking]
    Run.objects.bulk_create(created, batch_size=5000)
    requested = dict([*waiting_runs.values(), *((run.pk, run.slot) for run in created)])
    runs = Run.objects.filter(pk__in=requested, slot__in=set(requested.values()))
    return list(runs.select_related("series").order_by("series__sort_name"))


def _new_run(series: Series, slot: datetime, trigger: str, *, force: bool) -> Run:
    return Run(
        id=run_id(series.name, slot), series=series, slot=slot, due_at=slot, trigger=trigger, forced=force
    )
