"""Lay the study out as sections of numbered tables and figures. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from monitor.web.reports.blocks import Section, numbered
from monitor.web.reports.duration_blocks import distribution_blocks, stage_blocks, total_blocks
from monitor.web.reports.error_blocks import error_blocks, run_blocks
from monitor.web.reports.notes import (
    DEFINITIONS,
    difference_notes,
    lag_notes,
    stage_notes,
    success_notes,
    too_few_runs,
    weather_notes,
)
from monitor.web.reports.prediction_blocks import (
    correlation_blocks,
    forecast_blocks,
    matrix_blocks,
    normalised_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from monitor.web.reports.blocks import Block
    from monitor.web.reports.study_report import StudyReport


NO_RUNS = "Too few runs have passed for this section."


def study_sections(report: StudyReport) -> list[Section]:
    """Return the sections of *report*, their tables and figures numbered."""
    request = report.request
    return numbered(
        [
            _section("Runs", list(weather_notes(report)), run_blocks(report)),
            _section("Stages", list(stage_notes(report)), stage_blocks(report)),
            _section("Totals", [], total_blocks(report)),
            _section("Distribution of the totals", [], distribution_blocks(report)),
            _section("Errors", list(success_notes(report)), error_blocks(report)),
            _section(
                f"Correlation of {request.application} with probes",
                lag_notes(report),
                correlation_blocks(report),
            ),
            _section(f"{request.application} and {request.probe} over time", [], normalised_blocks(report)),
            _section(
                f"Forecasts of {request.application}",
                [too_few_runs(report)] if report.forecasts.is_empty else [],
                forecast_blocks(report),
            ),
            Section("Why the figures differ", list(difference_notes(report)), []),
            Section("Definitions", DEFINITIONS, []),
            replace(_section("Appendix: correlation of all stages", [], matrix_blocks(report)), is_wide=True),
        ]
    )


def _section(title: str, paragraphs: Sequence[str], blocks: Iterable[Block]) -> Section:
    """Return a section, which says so where it has no blocks."""
    found = list(blocks)
    return Section(title, [*paragraphs, *([] if found else [NO_RUNS])], found)
