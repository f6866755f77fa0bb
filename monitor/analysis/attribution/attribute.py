"""Find the parts of the grid that are at fault now, and store the verdicts with the runs they rest on."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import F

import probes
from monitor.analysis.attribution.culprits import Culprit, MeshResult, PartKind, culprits
from monitor.analysis.attribution.latest_results_sql import LatestResult, latest_results
from monitor.analysis.attribution.mesh_evidence import MeshRun, MeshSeries, mesh_results, mesh_series
from monitor.core.db import binary
from monitor.core.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.models import AttributedRun, Attribution, Binding, Resource, Run, Series
from probes.base import UnknownProbe

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from monitor.models.attribution import AttributionQuerySet

logger = logging.getLogger(__name__)
WINDOW = timedelta(hours=6)  # older results say nothing about the present
_PARTS = b"""
SELECT run.series_id, attribution.kind, attribution.name FROM monitor_attributedrun AS run
JOIN monitor_attribution AS attribution ON attribution.id = run.attribution_id
WHERE run.series_id = ANY (%b::bigint[]) AND attribution.ended_at IS NULL ORDER BY run.slot
"""
RESULTS_PER_SERIES = 3  # so that a verdict ends soon after its cause was removed


@transaction.atomic
def attribute(now: datetime) -> None:
    """Store the verdicts on the results up to *now*. Idempotent; a concurrent call does nothing.

    A verdict that is found again is confirmed; one that is not found any more ends.
    """
    if not try_lock_until_commit(AdvisoryLock.ATTRIBUTION):
        return
    results = [
        result
        for result in latest_results(now - WINDOW, now, RESULTS_PER_SERIES)
        if result.has_passed or result.counts_against_site
    ]
    found = culprits(_evidence(results)) if not all(result.has_passed for result in results) else []
    by_run = {str(result.id): result for result in results}
    open_ones = {(row.kind, row.name): row for row in Attribution.objects.open()}
    for culprit in found:
        row = open_ones.pop((culprit.part.kind.value, culprit.part.name), None)
        _store(row, culprit, [by_run[run] for run in culprit.runs], now)
    for row in open_ones.values():
        row.ended_at = now
        row.save()
        logger.info("no longer at fault: %s", row)


def explained(runs: Collection[UUID]) -> dict[UUID, Attribution]:
    """Return by run the part at fault, for those of *runs* that a verdict explains."""
    rows = AttributedRun.objects.filter(run__in=runs).select_related("attribution").order_by("attribution")
    return {row.run: row.attribution for row in rows}


def of_series(series: Collection[int]) -> dict[int, Attribution]:
    """Return by series the part that is at fault now, for those of *series* whose failures it explains."""
    rows = AttributedRun.objects.filter(series__in=series, attribution__ended_at=None)
    return {row.series_id: row.attribution for row in rows.select_related("attribution").order_by("slot")}


def parts_of_series(series: Collection[int]) -> dict[int, list[tuple[str, str]]]:
    """Return by series the kinds and names of the parts that are at fault now, the latest last."""
    parts: dict[int, list[tuple[str, str]]] = defaultdict(list)
    with binary.cursor() as cursor:
        rows = cursor.execute(_PARTS, [np.array([*series], dtype=np.int64)], binary=True).fetchall()
    for key, kind, name in rows:
        parts[key].append((kind, name))
    return parts


def sites_of_failed_step(run: Run) -> set[str]:
    """Return the sites that took part in the step in which *run* failed; none if the step is not known."""
    mesh = _mesh_series({run.series_id})
    if run.series_id not in mesh:
        return set()
    site = Resource.objects.filter(name=run.failed_resource).values_list("site__name", flat=True).first()
    failed = MeshRun(str(run.pk), run.stage, site or "", has_passed=False)
    results = mesh_results([(mesh[run.series_id], failed)])
    parts = [part for result in results if not result.has_passed for part in result.parts]
    return {name for part in parts if part.kind is not PartKind.REPORTER for name in part.name.split(">")}


def recent(attributions: AttributionQuerySet, since: datetime, site: str = "") -> QuerySet[Attribution]:
    """Return those of *attributions* that did not end before *since*, open ones first.

    With *site*, only those that explain failures of series that use it.
    """
    chosen = attributions.exclude(ended_at__lt=since)
    if site:
        series = Binding.objects.filter(resource__site__name=site).order_by().values("series")
        at_site = AttributedRun.objects.filter(series__in=series).values("attribution")
        chosen = chosen.filter(pk__in=at_site)
    return chosen.order_by(F("ended_at").desc(nulls_first=True), "-decided_at")


def _store(row: Attribution | None, culprit: Culprit, failed: Sequence[LatestResult], now: datetime) -> None:
    first = min(result.slot for result in failed)
    if row is None:
        kind, name = culprit.part.kind.value, culprit.part.name
        row = Attribution(kind=kind, name=name, since=first, decided_at=now)
        logger.warning("at fault: %s, with a probability of %.3f", row, culprit.probability)
    row.probability, row.failed, row.total = culprit.probability, culprit.failed, culprit.total
    row.latest_at = max(result.slot for result in failed)
    row.save()
    runs = {result.id: result for result in failed}  # a run may have failed in several results
    AttributedRun.objects.bulk_create(
        [
            AttributedRun(attribution=row, run=run, slot=result.slot, series_id=result.series_id)
            for run, result in runs.items()
        ],
        ignore_conflicts=True,
    )


def _evidence(results: Collection[LatestResult]) -> list[MeshResult]:
    mesh = _mesh_series({result.series_id for result in results})
    return mesh_results(
        (mesh[result.series_id], MeshRun(str(result.id), result.stage, result.site, result.has_passed))
        for result in results
        if result.series_id in mesh
    )


def _mesh_series(keys: Collection[int]) -> dict[int, MeshSeries]:
    """Return the series *keys* whose probes are known: those of imported series are not."""
    rows = Series.objects.filter(pk__in=keys).values_list("pk", "probe", "reporter__name")
    bindings = Binding.objects.filter(series__in=keys).order_by("series", "role", "position")
    sites: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key, role, site in bindings.values_list("series_id", "role", "resource__site__name"):
        sites[key][role].append(site)
    known: dict[int, MeshSeries] = {}
    for key, name, reporter in rows:
        try:
            probe = probes.load(name)
        except UnknownProbe:
            continue
        stages = [(stage.name, stage.category) for stage in probe.stages]
        known[key] = mesh_series(reporter, stages, _in_order(probe.roles, sites[key]))
    return known


def _in_order(roles: Iterable[str], sites: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    return {role: sites[role] for role in roles if role in sites}
