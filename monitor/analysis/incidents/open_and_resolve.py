"""Open and resolve incidents of failed runs: one for each cause by which series fail.

``monitor.analysis.alerts.group`` opens those of other alerts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, takewhile
from operator import attrgetter
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Max, Prefetch, Q

from monitor.analysis.attribution.attribute import parts_of_series
from monitor.analysis.attribution.latest_results_sql import latest_results
from monitor.analysis.incidents.causes import (
    AT,
    FAILED_IN_A_ROW,
    HELD_RUNS,
    ActiveCause,
    IncidentCause,
    LatestFailure,
    active_causes,
)
from monitor.core.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.models import Alert, Incident, IncidentEvent, IncidentSeries, Series
from monitor.models.incident import IncidentAction
from monitor.models.run import WITH_SIGNATURE

if TYPE_CHECKING:
    from monitor.models import Run
    from monitor.models.incident import IncidentQuerySet

logger = logging.getLogger(__name__)
OLDEST_RESULTS = timedelta(days=7)


@dataclass(frozen=True)
class EarlierIncident:
    """A resolved incident of the same cause, how long it lasted, and what users wrote about it."""

    incident: Incident
    seconds: float
    comments: Sequence[str]


@transaction.atomic
def update_incidents(now: datetime) -> None:
    """Open, extend and resolve incidents by the latest results. Idempotent; a concurrent call does nothing.

    A series is affected from its second failure in a row, or from the first one if an alert was opened by it,
    until a run passes. An incident without affected series is resolved. One that a user resolved is opened
    again only by a later failure.
    """
    if not try_lock_until_commit(AdvisoryLock.INCIDENTS):
        return
    failures, passed = _latest(now)
    open_ones = {_cause(row): row for row in Incident.objects.open().of_runs()}
    affected = {
        row.series_id: row
        for row in IncidentSeries.objects.filter(until=None).select_related("series", "incident")
    }
    current = {series: _cause(row.incident) for series, row in affected.items()}
    causes = active_causes(_not_resolved(failures), parts_of_series(failures), current)
    _recover(affected, causes, open_ones, passed, now)
    for active in causes:
        incident = open_ones.get(active.cause)
        if incident is None:
            incident = open_ones[active.cause] = _opened(active, now)
        _affect(incident, active, affected, now)
    _resolve(now)


def earlier(incident: Incident, among: IncidentQuerySet, most: int = 5) -> list[EarlierIncident]:
    """Return the newest resolved incidents of the cause of *incident*, of the incidents *among*.

    These have the same signature at the same place, or the same part at fault, or the same condition of
    alerts about the same series or reporter.
    """
    same = Q(kind=incident.kind)
    if incident.signature_id is not None:
        of_signature = Q(signature=incident.signature_id)
        same = of_signature if incident.kind in ("", AT) else of_signature | same
    rows = among.filter(same, name=incident.name, condition=incident.condition)
    rows = rows.exclude(pk=incident.pk).exclude(resolved_at=None)
    return _described(rows.filter(opened_at__lt=incident.opened_at), most)


def earlier_of_signature(
    signature: int, before: datetime, among: IncidentQuerySet, most: int = 5
) -> list[EarlierIncident]:
    """Return the newest resolved incidents *among* those by the *signature* that opened *before*."""
    rows = among.filter(signature=signature, opened_at__lt=before).exclude(resolved_at=None)
    return _described(rows, most)


def incident_of(run: Run, among: IncidentQuerySet) -> Incident | None:
    """Return the incident *among* which counts *run* to its failures; None if there is none."""
    rows = IncidentSeries.objects.filter(series=run.series_id, since__lte=run.slot)
    during = rows.filter(Q(until=None) | Q(until__gte=run.slot)).order_by("-since")
    return among.filter(pk__in=during.values("incident")).order_by("-opened_at").first()


def _described(rows: IncidentQuerySet, most: int) -> list[EarlierIncident]:
    commented = IncidentEvent.objects.filter(action=IncidentAction.COMMENTED)
    newest = rows.order_by("-opened_at").select_related("signature")
    return [
        EarlierIncident(
            row,
            (row.resolved_at - row.since).total_seconds(),
            [event.text for event in row.events.all()],
        )
        for row in newest.prefetch_related(Prefetch("events", commented))[:most]
        if row.resolved_at is not None
    ]


def _latest(now: datetime) -> tuple[dict[int, LatestFailure], dict[int, datetime]]:
    """Return by series the failures in a row, and the slot of the latest run if it passed."""
    by_failed_run = Alert.objects.open().filter(opened_by__state__in=WITH_SIGNATURE)
    alerted = set(by_failed_run.values_list("series_id", flat=True))
    failures: dict[int, LatestFailure] = {}
    passed: dict[int, datetime] = {}
    results = latest_results(now - OLDEST_RESULTS, now, HELD_RUNS)
    in_order = sorted(results, key=attrgetter("series_id", "slot"))
    for series, group in groupby(in_order, key=lambda result: result.series_id):
        newest_first = list(group)[::-1]
        failed = list(takewhile(lambda result: not result.has_passed, newest_first))
        if not failed:
            passed[series] = newest_first[0].slot
        elif len(failed) >= FAILED_IN_A_ROW or series in alerted:
            last, *earlier = failed
            before = [(each.signature_id, each.site) for each in earlier]
            failures[series] = LatestFailure(
                series, failed[-1].slot, last.slot, last.signature_id, last.site, before
            )
    return failures, passed


def _not_resolved(failures: dict[int, LatestFailure]) -> Iterator[LatestFailure]:
    """Yield the failures after which no user has resolved the incident of the series."""
    rows = IncidentSeries.objects.filter(series__in=failures).exclude(incident__resolved_by="")
    resolved = dict(rows.order_by().values_list("series").annotate(Max("incident__resolved_at")))
    for series, failure in failures.items():
        if series not in resolved or failure.latest_at > resolved[series]:
            yield failure


def _cause(incident: Incident) -> IncidentCause:
    is_part = incident.kind not in ("", AT)
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
    unaffected = Incident.objects.open().of_runs().exclude(affected__until=None)
    for incident in unaffected:
        last = incident.events.filter(action=IncidentAction.RECOVERED).last()
        ending = f"the last affected series {last.text}" if last else "no series is affected"
        incident.resolved_at, incident.resolution = now, ending
        incident.save()
        _record(incident, IncidentAction.RESOLVED, now, incident.resolution)
        logger.info("incident resolved: %s", incident)


def _record(
    incident: Incident, action: IncidentAction, now: datetime, text: str = "", series: int | None = None
) -> None:
    IncidentEvent.objects.create(incident=incident, at=now, action=action, text=text, series_id=series)
