"""Rows as CSV that a spreadsheet opens without running a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

# A spreadsheet evaluates a cell that begins with one of these; it folds the full-width forms.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


def to_csv(rows: Iterable[Iterable[object]], *, line_end: str = "\r\n") -> str:
    """Return *rows* as CSV; a text that a spreadsheet would evaluate gets an apostrophe before it.

    Numbers stay numbers, negative ones as well.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=line_end)
    writer.writerows(
        [f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell for cell in row]
        for row in rows
    )
    return text.getvalue()
