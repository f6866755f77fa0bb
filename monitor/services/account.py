"""Keep what a run used at its sites: one row for each that it was bound to, also where it used nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from monitor.depot import binary
from monitor.models.run import State

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from monitor.models import Run
    from monitor.services.decode import Told

_SITES = "SELECT name, site_id FROM monitor_resource WHERE name = ANY (%b)"
_KEEP = """
INSERT INTO monitor_usage (run_id, site_id, began_at, bytes, cpu_seconds)
SELECT * FROM unnest(%b::uuid[], %b::bigint[], %b::timestamptz[], %b::bigint[], %b::float8[])
ON CONFLICT (run_id, site_id) DO UPDATE
SET began_at = EXCLUDED.began_at, bytes = EXCLUDED.bytes, cpu_seconds = EXCLUDED.cpu_seconds
"""


class Row(NamedTuple):
    """What a run used at a site, by their keys; see ``monitor.models.Usage``."""

    run: uuid.UUID
    site: int
    began_at: datetime
    bytes: int | None = None
    cpu_seconds: float | None = None


def account(reports: Mapping[uuid.UUID, Told]) -> None:
    """Keep what *reports*, by run, say was used; nothing for runs that were skipped, for no site took part in
    them."""
    ran = {run: report for run, report in sorted(reports.items()) if report.outcome != State.SKIPPED}
    site_of = _sites({name for report in ran.values() for name in _resources(report)})
    _keep(row for run, report in ran.items() for row in _rows(run, report, site_of))


def _resources(report: Told) -> set[str]:
    """The names of all that it was bound to, or used."""
    bound = {name for names in report.measured.bindings.values() for name in names}
    return bound | report.usage.keys() if report.usage else bound


def _rows(run: uuid.UUID, report: Told, site_of: Mapping[str, int]) -> Iterator[Row]:
    """What it used at each site, all resources there together."""
    resources: dict[int, list[str]] = defaultdict(list)
    for resource in _resources(report):
        if resource in site_of:
            resources[site_of[resource]].append(resource)
    for site, there in resources.items():
        if report.usage is None:  # an older reporter does not say
            yield Row(run, site, report.started_at)
            continue
        used = [report.usage[name] for name in there if name in report.usage]
        moved = sum(one.bytes_sent + one.bytes_received for one in used)
        yield Row(run, site, report.started_at, moved, math.fsum(one.cpu_seconds for one in used))


def account_lost(runs: Iterable[Run]) -> None:
    """Keep that *runs* began, those that did, for what they used nobody knows; a late report corrects it."""
    _keep(
        Row(run.pk, site, run.started_at)
        for run in runs
        if run.started_at is not None
        for site in {binding.resource.site_id for binding in run.series.bindings.all()}
    )


def _keep(rows: Iterable[Row]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    if columns:
        with binary.cursor() as cursor:
            cursor.execute(_KEEP, columns)


def _sites(resources: Iterable[str]) -> dict[str, int]:
    """The key of the site of each of *resources* that is still known by its name."""
    with binary.cursor() as cursor:
        cursor.execute(_SITES, [list(resources)])
        return dict(cursor.fetchall())
