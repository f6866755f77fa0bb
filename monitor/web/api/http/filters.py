"""Filters that many list operations share; a query inherits those that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from monitor.models import Series
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import NameFilter, Time

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound="Model")


class SeriesFilter(BaseModel):
    """Filters of rows that belong to a series: by its name, its suite, and the sites that it uses."""

    series: NameFilter = ""
    suite: NameFilter = ""
    site: NameFilter = ""

    def of_series(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Return those of *rows*, which have a ``series``, whose series the filters select."""
        lookups = chosen(series__name=self.series, series__suite__name=self.suite)
        if self.site:
            lookups["series__in"] = Series.objects.filter(bindings__resource__site__name=self.site)
        return rows.filter(**lookups)


class WindowFilter(BaseModel):
    """A half-open time window: from *start* until before *end*."""

    start: Time | None = None
    end: Time | None = None

    def within(self, rows: QuerySet[Row], column: str) -> QuerySet[Row]:
        """Return those of *rows* whose *column* lies in the window.

        Raises Refused: the window is empty.
        """
        if self.start and self.end and self.start >= self.end:
            raise Refused(
                422, "empty_window", f"start: expected a time before {self.end.isoformat()}, the end"
            )
        return rows.filter(**chosen(**{f"{column}__gte": self.start, f"{column}__lt": self.end}))


def chosen(**lookups: Any) -> dict[str, Any]:
    """Return the *lookups* whose value is given."""
    return {name: value for name, value in lookups.items() if value is not None and value != ""}
