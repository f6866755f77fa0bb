"""Keep what a run used at its sites: one row for each that it was bound to, also where it used nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from monitor.db import binary
from monitor.models.run import State

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from monitor.ingest.fast_parser import Told
    from monitor.models import Run

# A resource that has another name by now, or is gone, counts nowhere.
_KEEP = """
INSERT INTO monitor_usage (run_id, site_id, began_at, bytes, cpu_seconds)
SELECT said.run, resource.site_id, said.began_at, sum(said.bytes), sum(said.cpu_seconds)
FROM unnest(%b::uuid[], %b::text[], %b::timestamptz[], %b::bigint[], %b::float8[])
    AS said (run, resource, began_at, bytes, cpu_seconds)
JOIN monitor_resource AS resource ON resource.name = said.resource
GROUP BY said.run, resource.site_id, said.began_at
ON CONFLICT (run_id, site_id) DO UPDATE
SET began_at = EXCLUDED.began_at, bytes = EXCLUDED.bytes, cpu_seconds = EXCLUDED.cpu_seconds
"""


class Row(NamedTuple):
    """What a run, by its key, used at a resource; None where its report does not say."""

    run: uuid.UUID
    resource: str
    began_at: datetime
    bytes: int | None = None
    cpu_seconds: float | None = None


def account(reports: Mapping[uuid.UUID, Told]) -> None:
    """Keep what *reports*, by run, say was used; nothing for runs that were skipped, for no site took part in
    them."""
    ran = ((run, report) for run, report in reports.items() if report.outcome != State.SKIPPED)
    _keep(row for run, report in ran for row in _rows(run, report))


def _rows(run: uuid.UUID, report: Told) -> Iterator[Row]:
    """What it used at each resource that it was bound to, and at others."""
    bound = {name for names in report.measured.bindings.values() for name in names}
    if report.usage is None:  # an older reporter does not say
        yield from (Row(run, name, report.started_at) for name in bound)
        return
    yield from (Row(run, name, report.started_at, 0, 0.0) for name in bound - report.usage.keys())
    for name, used in report.usage.items():
        moved = used.bytes_sent + used.bytes_received
        yield Row(run, name, report.started_at, moved, used.cpu_seconds)


def account_lost(runs: Iterable[Run]) -> None:
    """Keep that *runs* began, those that did, for what they used nobody knows; a late report corrects it."""
    _keep(
        Row(run.pk, name, run.started_at)
        for run in runs
        if run.started_at is not None
        for name in {binding.resource.name for binding in run.series.bindings.all()}
    )


def _keep(rows: Iterable[Row]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    if columns:
        with binary.cursor() as cursor:
            cursor.execute(_KEEP, columns)
