"""How a run ended, according to its report."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.models.run import State
from monitor.runs.ledger.transitions import ReportedEnd

if TYPE_CHECKING:
    import uuid

    from monitor.runs.ingest.fast_parser import ParsedReport

_CAUSE_CHARACTERS = 200
_NAME_CHARACTERS = 100  # of a stage or a resource in the ledger; the raw report has the whole name


def reported_end(run: uuid.UUID, report: ParsedReport) -> ReportedEnd:
    """Return the end of *run*, the id in the ledger; a skipped run has no times."""
    failure = report.failure
    has_run = report.outcome != State.SKIPPED
    return ReportedEnd(
        run=run,
        slot=report.slot,
        state=report.outcome,
        cause=f"reported by {report.reporter}"[:_CAUSE_CHARACTERS],
        reason=report.reason,
        stage=failure.stage[:_NAME_CHARACTERS] if failure else "",
        failed_resource=(failure.resource or "")[:_NAME_CHARACTERS] if failure else "",
        started_at=report.started_at if has_run else None,
        ended_at=ended_at(report) if has_run else None,
    )


def ended_at(report: ParsedReport) -> datetime:
    return report.started_at + timedelta(seconds=report.seconds)
