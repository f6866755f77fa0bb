"""The waterfall of a run: its stages over its duration, each with the expected range. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.core.units import seconds_range
from monitor.web.charts.stage_shades import drawn

if TYPE_CHECKING:
    from monitor.analysis.performance.expected_durations import ExpectedDuration
    from reporters.report import Report

NEAR = (0.75, 1.25)  # ratios to the median that are no news, however narrow the expected range
LEAST_WIDTH = 0.4  # percent: a stage of no duration stays visible


@dataclass(frozen=True)
class DurationBar:
    """A duration as a bar, beside the range that was expected; positions are percentages of the chart.

    Attributes:
        low_left, high_width: the expected range as a second bar; None if none is known.
        expected: the expected duration.
    """

    seconds: float
    left: float
    width: float
    expected: ExpectedDuration | None = None
    range_left: float = 0.0
    range_width: float = 0.0

    @property
    def range_text(self) -> str:
        """The expected range: ``0.8 to 1.2 s``; empty if none is known."""
        expected = self.expected
        return seconds_range(expected.low, expected.high) if expected else ""

    @property
    def deviation(self) -> str:
        """The ratio of a duration outside of the expected range to its median, in words; else empty."""
        expected = self.expected
        if expected is None or expected.low <= self.seconds <= expected.high or expected.median <= 0:
            return ""
        ratio = self.seconds / expected.median
        return "" if NEAR[0] < ratio < NEAR[1] else f"{ratio:.2g} \N{MULTIPLICATION SIGN} median"

    @property
    def direction(self) -> str:
        """``slow`` above the expected range, ``fast`` below it, else empty."""
        if not self.deviation or self.expected is None:
            return ""
        return "slow" if self.seconds > self.expected.high else "fast"


@dataclass(frozen=True)
class WaterfallBar:
    """One stage in the waterfall."""

    name: str
    category: str
    shade: int
    started_after_seconds: float
    duration: DurationBar
    has_failed: bool


def stage_metric(stage: str) -> str:
    """Return the name of the metric of the duration of *stage*."""
    return f"stage.{stage}.seconds"


def waterfall(report: Report, expected: Mapping[str, ExpectedDuration]) -> list[WaterfallBar]:
    """Return the stages of *report* over its duration; *expected* durations are by name of the metric.

    The chart is as long as the run, or as the longest expected stage that started.
    """
    ranges = [expected.get(stage_metric(stage.name)) for stage in report.stages]
    ends = [
        stage.started_after_seconds + max(stage.seconds, each.high if each else 0.0)
        for stage, each in zip(report.stages, ranges, strict=True)
    ]
    whole = max([report.seconds, *ends, 1e-9])
    shades = drawn((stage.name, stage.category) for stage in report.stages)
    failed = report.failure.stage if report.failure else None
    return [
        WaterfallBar(
            stage.name,
            stage.category,
            shade.shade,
            stage.started_after_seconds,
            duration_bar(stage.seconds, whole, each, start=stage.started_after_seconds),
            stage.name == failed,
        )
        for stage, shade, each in zip(report.stages, shades, ranges, strict=True)
    ]


def duration_bar(
    seconds: float, whole: float, expected: ExpectedDuration | None, *, start: float = 0.0
) -> DurationBar:
    """Return a bar of *seconds* from *start* on, in a chart that is *whole* seconds long."""
    left = 100 * start / whole
    width = max(100 * seconds / whole, LEAST_WIDTH)
    if expected is None:
        return DurationBar(seconds, min(left, 100 - width), width)
    range_width = max(100 * (expected.high - expected.low) / whole, LEAST_WIDTH)
    range_left = min(100 * (start + expected.low) / whole, 100 - range_width)
    return DurationBar(seconds, min(left, 100 - width), width, expected, range_left, range_width)
