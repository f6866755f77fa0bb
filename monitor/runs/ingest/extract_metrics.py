"""Extract the metrics of a report: the values that the probe measured, and durations of stages and totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from monitor.models.run import State
from reporters import report as wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monitor.runs.ingest.fast_parser import ParsedReport

# Increment with every change of ``values``: ``manage.py depot reparse`` then applies it to stored reports.
VERSION = 1


def values(report: ParsedReport) -> dict[str, float]:
    """Return the values of *report* by metric name; empty for a skipped run, which only cleans up."""
    if report.outcome == State.SKIPPED:
        return {}
    return {metric.name: metric.value for metric in report.metrics} | _durations(report)


def units(report: ParsedReport) -> dict[str, str]:
    """Return the unit of each metric in ``values(report)``."""
    return {metric.name: metric.unit for metric in report.metrics} | dict.fromkeys(
        _durations(report), "seconds"
    )


def _durations(report: ParsedReport) -> dict[str, float]:
    """Return the durations of stages and totals, in seconds, by metric name.

    A duration overrides a metric of the report with the same name.
    """
    seconds = {f"stage.{stage.name}.seconds": stage.seconds for stage in report.stages}
    # The totals of an unfinished run are no runtimes, and a run without stages did not take zero seconds.
    if report.outcome == State.PASSED and report.stages:
        seconds |= wire.totals(cast("Sequence[wire.StageTiming]", report.stages))
    return seconds
