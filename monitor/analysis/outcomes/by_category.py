"""Failed runs at a site, or at one resource, by the category of their causes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Count, Max

from monitor.models import FailureSignature, Run
from monitor.models.run import WITH_SIGNATURE

if TYPE_CHECKING:
    from monitor.models.run import RunQuerySet

NOT_CLASSIFIED = "not classified yet"


class CauseRuns(NamedTuple):
    """The *runs* that failed by *signature* (a primary key, None: not classified), the latest at *latest*."""

    signature: int | None
    runs: int
    latest: datetime


@dataclass(frozen=True)
class CategoryFailures:
    """The failed *runs* of a category, most frequently by *cause* (None: not classified yet)."""

    category: str
    runs: int
    cause: FailureSignature | None
    cause_runs: int
    latest: datetime


def failed_at(resources: Collection[str], series: Collection[int]) -> RunQuerySet:
    """Return the runs of *series* (primary keys) that failed at one of *resources* (names)."""
    failed = Run.objects.filter(failed_resource__in=resources, state__in=WITH_SIGNATURE)
    return failed.filter(series__in=series)


def failures_by_category(runs: RunQuerySet, start: datetime | None, end: datetime) -> list[CategoryFailures]:
    """Return the categories of failed *runs* with slots from *start* until *end*, the most frequent first."""
    within = runs.filter(slot__lte=end).order_by()
    within = within.filter(slot__gte=start) if start else within
    counted = within.values_list("signature").annotate(runs=Count("*"), latest=Max("slot"))
    causes = [CauseRuns(*row) for row in counted]
    keys = {cause.signature for cause in causes if cause.signature}
    return by_category(causes, FailureSignature.objects.in_bulk(keys))


def by_category(
    causes: Iterable[CauseRuns], signatures: Mapping[int, FailureSignature]
) -> list[CategoryFailures]:
    """Return *causes* by the categories of *signatures*, the most frequent category first. Pure."""
    grouped: dict[str, list[CauseRuns]] = defaultdict(list)
    for cause in causes:
        category = signatures[cause.signature].category if cause.signature else NOT_CLASSIFIED
        grouped[category].append(cause)
    rows = [_row(category, own, signatures) for category, own in grouped.items()]
    return sorted(rows, key=lambda row: (-row.runs, row.category))


def _row(
    category: str, causes: Sequence[CauseRuns], signatures: Mapping[int, FailureSignature]
) -> CategoryFailures:
    most = max(causes, key=lambda cause: (cause.runs, cause.latest))
    return CategoryFailures(
        category=category,
        runs=sum(cause.runs for cause in causes),
        cause=signatures[most.signature] if most.signature else None,
        cause_runs=most.runs,
        latest=max(cause.latest for cause in causes),
    )
