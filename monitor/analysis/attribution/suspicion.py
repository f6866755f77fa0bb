"""Blast-radius guard: many sites that begin to fail at once throw suspicion on the monitor itself.

One incident says so. Meanwhile the incidents that began with it, and their notifications, are held.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from monitor.analysis.attribution.culprits import suspects_the_monitor
from monitor.core.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.models import Incident, IncidentEvent, Reporter, Site
from monitor.models.incident import MONITOR, REPORTER, IncidentAction
from monitor.models.natural_order import sort_name

if TYPE_CHECKING:
    from monitor.models.incident import IncidentQuerySet

logger = logging.getLogger(__name__)
_SITE_KINDS = ("at", "site", "source", "destination", "compute")


@transaction.atomic
def suspect_the_monitor(now: datetime) -> None:
    """Open one incident if many sites began to fail at once, and hold the others until it is settled.

    It is settled when fewer sites fail, or by a user. Idempotent; a concurrent call does nothing.
    """
    if not try_lock_until_commit(AdvisoryLock.INCIDENTS):
        return
    window = timedelta(seconds=settings.GRIDCAST_SUSPECT_WINDOW_SECONDS)
    recent = _opened_since(max(filter(None, (now - window, _settled_by_user()))))
    held = Incident.objects.filter(is_held=True)
    suspect = Incident.objects.open().filter(kind=MONITOR).first()
    failing = _sites(recent if suspect is None else held.open() | recent)
    sites = set(Site.objects.filter(resources__bindings__series__enabled=True).values_list("name", flat=True))
    if not suspects_the_monitor(failing, sites, share=settings.GRIDCAST_SUSPECT_SHARE):
        _settle(suspect, held, now)
        return
    if suspect is None:
        suspect = Incident.objects.create(kind=MONITOR, since=min(row.since for row in recent), opened_at=now)
        names = sorted(failing & sites, key=sort_name)
        text = f"{len(names)} of {len(sites)} sites: {', '.join(names)}"
        _record(suspect, IncidentAction.OPENED, text, now)
        logger.warning("suspect the monitor: many sites fail at once: %s", text)
    recent.update(is_held=True)


def suspicion_periods(start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Return the periods within [*start*, *end*) in which the monitor is suspected, sorted, disjoint.

    A period begins with the first failure that threw suspicion on the monitor. Results in it prove nothing
    about sites. A suspicion that a user resolved is none: the sites did fail.
    """
    rows = Incident.objects.filter(kind=MONITOR, resolved_by="", since__lt=end)
    rows = rows.filter(Q(resolved_at=None) | Q(resolved_at__gt=start))
    periods = rows.order_by("since").values_list("since", "resolved_at")
    return merged((max(since, start), min(until or end, end)) for since, until in periods)


def merged(periods: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Return the union of *periods*, which are sorted by start, as disjoint periods. Pure."""
    union: list[tuple[datetime, datetime]] = []
    for start, end in periods:
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        elif start < end:
            union.append((start, end))
    return union


def _settled_by_user() -> datetime | None:
    """Return when a user last resolved a suspicion: earlier failures throw no suspicion on the monitor."""
    by_user = Incident.objects.filter(kind=MONITOR).exclude(resolved_by="").order_by("-resolved_at")
    return by_user.values_list("resolved_at", flat=True).first()


def _opened_since(since: datetime) -> IncidentQuerySet:
    return Incident.objects.open().exclude(kind=MONITOR).filter(opened_at__gt=since)


def _sites(incidents: Iterable[Incident]) -> set[str]:
    """Return the sites that changed state: those of *incidents*, and of the reporters at fault."""
    reporters = {incident.name for incident in incidents if incident.kind == REPORTER}
    at_sites = Reporter.objects.remote().filter(name__in=reporters).values_list("site__name", flat=True)
    return {incident.name for incident in incidents if incident.kind in _SITE_KINDS} | set(at_sites)


def _settle(suspect: Incident | None, held: IncidentQuerySet, now: datetime) -> None:
    """Release the *held* incidents; resolve *suspect* if a user has not done so."""
    if suspect is not None:
        ended, total = held.exclude(resolved_at=None).count(), held.count()
        suspect.resolved_at = now
        suspect.resolution = f"fewer sites fail; {ended} of {total} held incidents ended meanwhile"
        suspect.save()
        _record(suspect, IncidentAction.RESOLVED, suspect.resolution, now)
    held.update(is_held=False)


def _record(incident: Incident, action: IncidentAction, text: str, now: datetime) -> None:
    IncidentEvent.objects.create(incident=incident, at=now, action=action, text=text)
