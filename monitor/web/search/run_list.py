"""The runs of a series, filtered by time and state, page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Count

from monitor.models import Run
from monitor.models.run import ENDED

if TYPE_CHECKING:
    from monitor.models import Series

RUNS_A_PAGE = 50
_COLUMNS = (
    "id", "series_id", "slot", "state", "stage", "reason", "trigger", "started_at", "ended_at"
)  # fmt: skip


@dataclass(frozen=True)
class RunPage:
    """One *page* of *pages*, newest first; *counts* has the runs of the range by state."""

    runs: Sequence[Run]
    counts: Mapping[str, int]
    count: int
    page: int
    pages: int


def list_runs(
    series: Series, start: datetime | None, end: datetime, *, state: str = "", page: int = 1
) -> RunPage:
    """Return ended runs of *series* from *start* until before *end*, of any state if *state* is empty."""
    ended = Run.objects.filter(series=series, state__in=ENDED, slot__lt=end)
    if start is not None:
        ended = ended.filter(slot__gte=start)
    counts = Counter(dict(ended.order_by().values_list("state").annotate(Count("pk"))))
    count = counts[state] if state else counts.total()
    pages = max(1, -(-count // RUNS_A_PAGE))
    page = min(max(page, 1), pages)
    runs = ended.filter(state=state) if state else ended
    first = (page - 1) * RUNS_A_PAGE
    shown = runs.order_by("-slot").only(*_COLUMNS)[first : first + RUNS_A_PAGE]
    return RunPage(list(shown), counts, count, page, pages)
