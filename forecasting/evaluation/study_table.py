"""The table of predictions of the study as texts: what was measured here, beside what was published. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from forecasting.evaluation.published_predictions import (
    ERRORS,
    MEAN_SECONDS,
    STDEV_SECONDS,
    PublishedForecastError,
)
from forecasting.evaluation.study import METHODS, StudyCell, StudyColumn

UNDEFINED = "-"


@dataclass(frozen=True)
class ComparedRow:
    """A row of the table: the texts of each metric, of these runs, as published, and their difference."""

    label: str
    here: Sequence[str]
    published: Sequence[str]
    difference: Sequence[str]


def compared(columns: Mapping[str, StudyColumn], scale: float = 1.0) -> Iterator[ComparedRow]:
    """Yield the rows of the published table for *columns*, of which the values are times *scale* seconds.

    The differences of mean and deviation are in per cent of the published ones, those of errors in percentage
    points. Published numbers are as published; what was not published, or cannot be computed, is ``-``.
    """
    yield _of_values("Mean", {name: column.mean for name, column in columns.items()}, MEAN_SECONDS, scale)
    yield _of_values(
        "Std. dev.", {name: column.stdev for name, column in columns.items()}, STDEV_SECONDS, scale
    )
    for studied in METHODS:
        cells = {metric: column.cells[studied.method] for metric, column in columns.items()}
        errors = ERRORS[studied.method]
        yield ComparedRow(
            studied.label,
            [_error_text(cell) for cell in cells.values()],
            [error.text() if (error := errors.get(metric)) else UNDEFINED for metric in columns],
            [_difference_text(cell, errors.get(metric)) for metric, cell in cells.items()],
        )


def _of_values(
    label: str, values: Mapping[str, float | None], published: Mapping[str, float], scale: float
) -> ComparedRow:
    here = {metric: scale * value for metric, value in values.items() if value is not None}
    shares = {metric: here[metric] / there - 1 for metric, there in published.items() if metric in here}
    return ComparedRow(
        label,
        [f"{here[metric]:.2f}" if metric in here else UNDEFINED for metric in values],
        [f"{published[metric]:.2f}" if metric in published else UNDEFINED for metric in values],
        [f"{100 * shares[metric]:+z.1f} %" if metric in shares else UNDEFINED for metric in values],
    )


def _error_text(cell: StudyCell) -> str:
    if cell.relative_error is None:
        return UNDEFINED
    variation = UNDEFINED if cell.variation is None else f"{100 * cell.variation:.1f}"
    return f"{100 * cell.relative_error:.2f} ({variation})"


def _difference_text(cell: StudyCell, error: PublishedForecastError | None) -> str:
    if cell.relative_error is None or error is None:
        return UNDEFINED
    return f"{100 * cell.relative_error - error.percent:+z.2f}"
