"""The time that a table shows, as a part of the filter of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

Rows = TypeVar("Rows", bound="QuerySet[Any]")


@dataclass(frozen=True, kw_only=True)
class SelectedTime:
    """From *start* (None: the first row) until before *end*."""

    end: datetime
    start: datetime | None = None

    def within(self, rows: Rows, column: str) -> Rows:
        """Return those of *rows* whose *column* lies in the time."""
        rows = rows.filter(**{f"{column}__lt": self.end})
        return rows if self.start is None else rows.filter(**{f"{column}__gte": self.start})
