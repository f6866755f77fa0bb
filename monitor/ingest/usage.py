"""Record the usage that reports give: one row for each resource of a run, also where it used nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from monitor.ledger.usage import UsageRow, record
from monitor.models.run import State

if TYPE_CHECKING:
    import uuid

    from monitor.ingest.fast_parser import ParsedReport


def account(reports: Mapping[uuid.UUID, ParsedReport]) -> None:
    """Keep what *reports*, by run, say was used; nothing for runs that were skipped, for no site took part in
    them."""
    ran = ((run, report) for run, report in reports.items() if report.outcome != State.SKIPPED)
    record(row for run, report in ran for row in _rows(run, report))


def _rows(run: uuid.UUID, report: ParsedReport) -> Iterator[UsageRow]:
    """What it used at each resource that it was bound to, and at others."""
    bound = {name for names in report.measured.bindings.values() for name in names}
    yield from (UsageRow(run, name, report.started_at, 0, 0.0) for name in bound - report.usage.keys())
    for name, used in report.usage.items():
        moved = used.bytes_sent + used.bytes_received
        yield UsageRow(run, name, report.started_at, moved, used.cpu_seconds)
