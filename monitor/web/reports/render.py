"""Render reports as text, as JSON, and as one HTML file without scripts or outside resources."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
from django.template.loader import render_to_string

from forecasting.commands.study import document as forecast_document
from monitor.analysis.performance.tables import as_text
from monitor.core.csvfile import to_csv
from monitor.web.reports.layout import study_sections
from monitor.web.reports.published_numbers import GRIDS
from monitor.web.reports.storage_blocks import csv_rows, storage_sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from monitor.web.reports.blocks import Section
    from monitor.web.reports.storage_report import StorageReport
    from monitor.web.reports.study_report import StudyReport

_TEMPLATE = "reports/study.html"
STORAGE_TITLE = "Storage: our numbers beside published ones"


def study_html(report: StudyReport) -> str:
    context = {"title": _title(report), "facts": list(_facts(report)), "sections": study_sections(report)}
    return render_to_string(_TEMPLATE, context)


def study_text(report: StudyReport) -> str:
    """Return the tables and notes of *report*; figures are left out."""
    return _text(_title(report), _facts(report), study_sections(report))


def storage_html(report: StorageReport) -> str:
    context = {
        "title": STORAGE_TITLE,
        "facts": list(_storage_facts(report)),
        "sections": storage_sections(report),
    }
    return render_to_string(_TEMPLATE, context)


def storage_text(report: StorageReport) -> str:
    """Return the tables and notes of *report*."""
    return _text(STORAGE_TITLE, _storage_facts(report), storage_sections(report))


def storage_csv(report: StorageReport) -> str:
    """Return the tables of *report*; the number and the title of its table are before each row."""
    return to_csv(csv_rows(storage_sections(report)))


def storage_document(report: StorageReport) -> dict[str, Any]:
    """Return the tables of *report* as JSON values, as they are printed."""
    return {
        "made_at": report.made_at.isoformat(),
        "depot_problem": report.depot_problem or None,
        "sections": [
            {
                "title": section.title,
                "paragraphs": list(section.paragraphs),
                "tables": [
                    {"title": block.title, "headings": block.table.headings, "rows": block.table.rows}
                    for block in section.blocks
                    if block.table
                ],
            }
            for section in storage_sections(report)
        ],
    }


def _storage_facts(report: StorageReport) -> Iterator[tuple[str, str]]:
    yield "Published", "the flash thesis, the prediction paper and the throttling paper"
    areas = ", ".join(area.resource.name for area in report.areas[:20]) or "none"
    yield "Storage areas", "no depot was read" if report.depot_problem else areas
    yield "Made", f"{report.made_at:%Y-%m-%d %H:%M} UTC"


def _text(title: str, facts: Iterable[tuple[str, str]], sections: Iterable[Section]) -> str:
    head = "\n".join([title, *(f"{term}: {text}" for term, text in facts)])
    return "\n\n".join([head, *(part for section in sections for part in _parts(section))])


def _parts(section: Section) -> Iterator[str]:
    tables = [block for block in section.blocks if block.table]
    if section.paragraphs or tables:
        yield f"# {section.title}"
    if section.paragraphs:
        yield "\n".join(section.paragraphs)
    for block in tables:
        if block.table:
            yield f"Table {block.number}. {as_text(block.table)}"


def study_document(report: StudyReport) -> dict[str, Any]:
    """Return every figure of *report* as JSON values, unrounded; durations in seconds as measured."""
    published = GRIDS[report.grid] if report.grid else None
    found = report.outcomes
    return {
        "predictions": forecast_document(report.forecasts.columns),
        "facts": asdict(report.forecasts.facts) if report.forecasts.facts else None,
        "grid": report.grid,
        "published": msgspec.to_builtins(published, str_keys=True),
        "made_at": report.made_at.isoformat(),
        "first_slot": found.first.isoformat(),
        "last_slot": found.last.isoformat(),
        "weathers": [
            {
                "profile": weather.profile,
                "seed": weather.seed,
                "scale": weather.scale,
                "edition": weather.edition,
                "since": weather.since.isoformat(),
            }
            for weather in report.weathers
        ],
        "seconds_of_the_grid_per_second": report.scale,
        "outcomes": {
            name: {
                "probe": report.probe_of[name],
                **asdict(rates),
                "raw": rates.raw,
                "adjusted": rates.adjusted,
            }
            for name, rates in found.rates.items()
        },
        "passed_together": {
            **asdict(report.together),
            "raw": report.together.raw,
            "adjusted": report.together.adjusted,
        },
        "errors": {probe: msgspec.to_builtins(errors.causes) for probe, errors in found.errors.items()},
        "statistics": msgspec.to_builtins(report.statistics, str_keys=True),
        "series_left_out": list(report.left_out),
        "normalised": msgspec.to_builtins(report.pairs),
    }


def _title(report: StudyReport) -> str:
    beside = f", beside {GRIDS[report.grid].title}" if report.grid else ""
    return f"The study of two grids, repeated{beside}"


def _facts(report: StudyReport) -> Iterator[tuple[str, str]]:
    found = report.outcomes
    if report.grid:
        yield "Published", f"Gather on {GRIDS[report.grid].title}: about 4,000 hourly runs in half a year"
    yield "Application", f"{report.request.application}, forecast from {report.request.probe}"
    yield "Runs", f"{found.first:%Y-%m-%d %H:%M} to {found.last:%Y-%m-%d %H:%M} UTC"
    yield "Series", ", ".join(sorted(report.outcomes.rates))
    if report.left_out:
        yield "Left out", f"{len(report.left_out)} series with fewer runs: {', '.join(report.left_out[:20])}"
    yield "Made", f"{report.made_at:%Y-%m-%d %H:%M} UTC"
