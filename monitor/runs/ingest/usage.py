"""Record the usage of runs from their reports: one row per resource, even if nothing was used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from monitor.models.run import State
from monitor.runs.ledger.usage import UsageRow, record

if TYPE_CHECKING:
    import uuid

    from monitor.runs.ingest.fast_parser import ParsedReport


def record_usage(reports: Mapping[uuid.UUID, ParsedReport]) -> None:
    """Record the usage of each run in *reports* (by run id); omit skipped runs, which used no site."""
    record(
        row
        for run, report in reports.items()
        if report.outcome != State.SKIPPED
        for row in _rows(run, report)
    )


def _rows(run: uuid.UUID, report: ParsedReport) -> Iterator[UsageRow]:
    """Yield a row for each resource that the run was bound to or used."""
    for name in report.measured.resources - report.usage.keys():
        yield UsageRow(run, name, report.started_at, 0, 0.0)
    for name, used in report.usage.items():
        transferred = used.bytes_sent + used.bytes_received
        yield UsageRow(run, name, report.started_at, transferred, used.cpu_seconds)
