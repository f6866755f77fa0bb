"""Open and resolve incidents: one for each cause by which series fail, not one for each series."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from django.db import transaction
from django.db.models import Max, Prefetch

from monitor.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.failures.attribute import of_series
from monitor.failures.attribution import suspects_the_monitor
from monitor.failures.incident_causes import (
    FAILED_IN_A_ROW,
    ActiveCause,
    IncidentCause,
    LatestFailure,
    active_causes,
)
from monitor.failures.latest_results_sql import latest_results
from monitor.models import Incident, IncidentEvent, IncidentSeries, Series, Site
from monitor.models.incident import MONITOR, IncidentAction

logger = logging.getLogger(__name__)
OLDEST_RESULTS = timedelta(days=7)
BLAST_WINDOW = timedelta(minutes=15)
BLAST_SHARE = 0.5  # of the sites: if so many fail within the window, the monitor is suspected
_SITE_KINDS = ("at", "site", "source", "destination", "compute")


@dataclass(frozen=True)
class EarlierIncident:
    """A resolved incident of the same cause, how long it lasted, and what users wrote about it."""

    incident: Incident
    seconds: float
    comments: Sequence[str]


@transaction.atomic
def update_incidents(now: datetime) -> None:
    """Open, extend and resolve incidents by the latest results. Idempotent; a concurrent call does nothing.

    A series is affected from its second failure in a row until a run passes. An incident without affected
    series is resolved. One that a user resolved is opened again only by a later failure.
    """
    if not try_lock_until_commit(AdvisoryLock.INCIDENTS):
        return
    failures, passed = _latest(now)
    at_fault = {key: (row.kind, row.name) for key, row in of_series(failures).items()}
    causes = active_causes(_not_resolved(failures), at_fault)
    open_ones = {_cause(row): row for row in Incident.objects.open().exclude(kind=MONITOR)}
    affected = {
        row.series_id: row for row in IncidentSeries.objects.filter(until=None).select_related("series")
    }
    _recover(affected, causes, open_ones, passed, now)
    for active in causes:
        incident = open_ones.get(active.cause)
        if incident is None:
            incident = open_ones[active.cause] = _opened(active, now)
        _affect(incident, active, affected, now)
    _resolve(now)
    _suspect_the_monitor(now)


def earlier(incident: Incident, most: int = 5) -> list[EarlierIncident]:
    """Return the newest resolved incidents with the signature of *incident* at the same place."""
    same = Incident.objects.filter(signature=incident.signature, name=incident.name).exclude(pk=incident.pk)
    rows = same.exclude(resolved_at=None).filter(opened_at__lt=incident.opened_at).order_by("-opened_at")
    commented = IncidentEvent.objects.filter(action=IncidentAction.COMMENTED)
    return [
        EarlierIncident(
            row,
            (row.resolved_at - row.since).total_seconds(),
            [event.text for event in row.events.all()],
        )
        for row in rows.prefetch_related(Prefetch("events", commented))[:most]
        if row.resolved_at is not None
    ]


def _latest(now: datetime) -> tuple[dict[int, LatestFailure], dict[int, datetime]]:
    """Return by series what failed at least twice in a row, and the slot of the latest run if it passed."""
    failures: dict[int, LatestFailure] = {}
    passed: dict[int, datetime] = {}
    results = latest_results(now - OLDEST_RESULTS, now, FAILED_IN_A_ROW)
    in_order = sorted(results, key=attrgetter("series_id", "slot"))
    for series, group in groupby(in_order, key=lambda result: result.series_id):
        own = list(group)
        if own[-1].has_passed:
            passed[series] = own[-1].slot
        elif len(own) == FAILED_IN_A_ROW and not any(result.has_passed for result in own):
            first, last = own[0], own[-1]
            failures[series] = LatestFailure(series, first.slot, last.slot, last.signature_id, last.site)
    return failures, passed


def _not_resolved(failures: dict[int, LatestFailure]) -> Iterator[LatestFailure]:
    """Yield the failures after which no user has resolved the incident of the series."""
    rows = IncidentSeries.objects.filter(series__in=failures).exclude(incident__resolved_by="")
    resolved = dict(rows.order_by().values_list("series").annotate(Max("incident__resolved_at")))
    for series, failure in failures.items():
        if series not in resolved or failure.latest_at > resolved[series]:
            yield failure


def _cause(incident: Incident) -> IncidentCause:
    is_part = incident.kind not in ("", "at")
    return IncidentCause(incident.kind, incident.name, None if is_part else incident.signature_id)


def _opened(active: ActiveCause, now: datetime) -> Incident:
    incident = Incident.objects.create(
        signature_id=active.signature,
        kind=active.cause.kind,
        name=active.cause.name,
        since=active.since,
        opened_at=now,
    )
    _record(incident, IncidentAction.OPENED, now)
    logger.warning("incident opened: %s", incident)
    return incident


def _recover(
    affected: dict[int, IncidentSeries],
    causes: Iterable[ActiveCause],
    open_ones: dict[IncidentCause, Incident],
    passed: dict[int, datetime],
    now: datetime,
) -> None:
    """End what affects series that passed, are disabled, or now fail by another cause."""
    cause_of = {failure.series: active.cause for active in causes for failure in active.failures}
    enabled = set(Series.objects.filter(pk__in=affected, enabled=True).values_list("pk", flat=True))
    for series, row in list(affected.items()):
        if series in passed:
            text = "passed"
        elif series not in enabled:
            text = "is disabled"
        elif series in cause_of and getattr(open_ones.get(cause_of[series]), "pk", None) != row.incident_id:
            text = "fails by another cause"
        else:
            continue
        row.until = now
        row.save()
        del affected[series]
        _record(row.incident, IncidentAction.RECOVERED, now, text, series)


def _affect(
    incident: Incident, active: ActiveCause, affected: dict[int, IncidentSeries], now: datetime
) -> None:
    new = [failure for failure in active.failures if failure.series not in affected]
    if not new:
        return
    IncidentSeries.objects.bulk_create(
        [IncidentSeries(incident=incident, series_id=each.series, since=each.since) for each in new]
    )
    for each in new:
        _record(incident, IncidentAction.AFFECTED, now, series=each.series)


def _resolve(now: datetime) -> None:
    unaffected = Incident.objects.open().exclude(kind=MONITOR).exclude(affected__until=None)
    for incident in unaffected:
        last = incident.events.filter(action=IncidentAction.RECOVERED).last()
        ending = f"the last affected series {last.text}" if last else "no series is affected"
        incident.resolved_at, incident.resolution = now, ending
        incident.save()
        _record(incident, IncidentAction.RESOLVED, now, incident.resolution)
        logger.info("incident resolved: %s", incident)


def _suspect_the_monitor(now: datetime) -> None:
    """Open one incident if many sites began to fail at once, and hold theirs until it is settled."""
    settled = Incident.objects.filter(kind=MONITOR).exclude(resolved_by="").order_by("-resolved_at").first()
    since = now - BLAST_WINDOW
    if settled is not None and settled.resolved_at is not None:  # a user knows better
        since = max(since, settled.resolved_at)
    recent = Incident.objects.open().filter(kind__in=_SITE_KINDS, opened_at__gt=since)
    sites = set(Site.objects.filter(resources__bindings__series__enabled=True).values_list("name", flat=True))
    suspect = Incident.objects.open().filter(kind=MONITOR).first()
    held = Incident.objects.open().filter(is_held=True)
    candidates = recent if suspect is None else held | recent
    is_suspected = suspects_the_monitor({row.name for row in candidates}, sites, share=BLAST_SHARE)
    if is_suspected and suspect is None:
        suspect = Incident.objects.create(kind=MONITOR, since=min(row.since for row in recent), opened_at=now)
        _record(suspect, IncidentAction.OPENED, now, ", ".join(sorted({row.name for row in recent})))
        logger.warning("suspect the monitor: many sites fail at once")
    if is_suspected:
        recent.update(is_held=True)
        return
    held.update(is_held=False)
    if suspect is not None:
        suspect.resolved_at, suspect.resolution = now, "fewer sites fail"
        suspect.save()
        _record(suspect, IncidentAction.RESOLVED, now, suspect.resolution)


def _record(
    incident: Incident, action: IncidentAction, now: datetime, text: str = "", series: int | None = None
) -> None:
    IncidentEvent.objects.create(incident=incident, at=now, action=action, text=text, series_id=series)
