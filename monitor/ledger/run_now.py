"""Ask for runs now, beside the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from monitor.ledger.holds import InvalidRequest, RunHeld, checked_reason, covering_holds
from monitor.models import Hold, Run, Series
from monitor.models.run import PLANNED
from reporters.report import run_id

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.hold import Scope


@dataclass(frozen=True)
class RequestedRuns:
    """The runs that were asked for, and the series that were not because they are held, by name."""

    runs: Sequence[Run]
    held: Sequence[tuple[Series, Hold]] = ()


@transaction.atomic
def run_now(
    series: Series, *, who: str, why: str = "", force: bool = False, now: datetime | None = None
) -> Run:
    """Put a run of *series* into the ledger, due at once; the next tick claims it.

    Works for a series that is not enabled, too: somebody asked. If it is running, the
    new run waits for its end. One that waits already is the answer to all who ask.

    Raises:
        Held: the series is held, and it is not *force*\\ d: such a run begins in spite of the holds
            that there are when it is asked for.
        InvalidOrder: *why* cannot be kept, or the series was imported.
    """
    if series.is_imported:
        raise InvalidRequest(f"{series.name} was imported: nothing here can run it")
    slot = now or timezone.now()
    held = covering_holds([series.pk], Hold.objects.at(slot))
    if held and not force:
        raise RunHeld(series.name, held[series.pk])
    trigger = f"asked for by {who}" + (f": {checked_reason(why)}" if why else "")
    (run,) = _ask([series.pk], trigger, slot, force=force)
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
    """Ask for a run of every enabled series of *scope* that *user* may see; without one, of all of them.

    Those that are held are passed over, unless *force*.

    Raises:
        Held: all of them are.
        InvalidOrder: there is none, or *why* cannot be kept.
    """
    slot = now or timezone.now()
    trigger = f"asked for by {who} for the {scope}: {checked_reason(why)}"
    concerned = scope.series().filter(enabled=True)
    if user is not None:
        concerned = concerned.filter(pk__in=Series.objects.visible_to(user).values("pk"))
    found = list(concerned.order_by("name"))
    if not found:
        raise InvalidRequest(f"the {scope} has no series that is switched on")
    held = {} if force else covering_holds([one.pk for one in found], Hold.objects.at(slot))
    free = [one.pk for one in found if one.pk not in held]
    if not free:
        raise RunHeld(f"the {scope}", held[found[0].pk])
    passed_over = [(one, held[one.pk]) for one in found if one.pk in held]
    return RequestedRuns(_ask(free, trigger, slot, force=force), passed_over)


def _ask(series: Sequence[int], trigger: str, slot: datetime, *, force: bool) -> list[Run]:
    """A run of each of *series* that waits or is new, in the order of the series' names."""
    of = Series.objects.filter(pk__in=series)
    locked = list(of.select_for_update(no_key=True).order_by("pk"))  # of two who ask at once one is first
    waiting = Run.objects.due(slot).filter(series__in=series).exclude(trigger__in=PLANNED)
    if force:
        waiting = waiting.filter(forced=True)
    found = {of: (run, its) for of, run, its in waiting.values_list("series_id", "pk", "slot")}
    new = [
        Run(id=run_id(one.name, slot), series=one, slot=slot, due_at=slot, trigger=trigger, forced=force)
        for one in locked
        if one.pk not in found
    ]
    Run.objects.bulk_create(new, ignore_conflicts=True, batch_size=5000)
    asked = dict([*found.values(), *((run.pk, run.slot) for run in new)])
    those = Run.objects.filter(pk__in=asked, slot__in=set(asked.values()))
    return list(those.select_related("series").order_by("series__name"))
