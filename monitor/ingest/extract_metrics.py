"""The numbers that a report gives, by the names of their metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from monitor.models.run import State
from reporters import report as wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monitor.ingest.fast_parser import ParsedReport

# Of what is made of a report: counted up with every change of ``values``. Reports that an older one has read
# are read again by ``manage.py depot reparse``.
VERSION = 1


def values(report: ParsedReport) -> dict[str, float]:
    """Every number of *report*: its own metrics, its stages and, of a passed run, its totals.

    None of a run that was skipped: its cleanup is no measurement.
    """
    if report.outcome == State.SKIPPED:
        return {}
    return {metric.name: metric.value for metric in report.metrics} | _derived(report)


def units(report: ParsedReport) -> dict[str, str]:
    """The unit of each of its ``values``."""
    return {metric.name: metric.unit for metric in report.metrics} | dict.fromkeys(
        _derived(report), "seconds"
    )


def _derived(report: ParsedReport) -> dict[str, float]:
    """Durations, which no metric of the report's own hides."""
    seconds = {f"stage.{stage.name}.seconds": stage.seconds for stage in report.stages}
    # The totals of half a run are no runtimes, and what was measured without a clock took no zero seconds.
    if report.outcome == State.PASSED and report.stages:
        seconds |= wire.totals(cast("Sequence[wire.StageTiming]", report.stages))
    return seconds
