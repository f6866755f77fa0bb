"""Metrics of remote reporters, as of their last exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from monitor.models import ReporterStatus
from monitor.web.metrics import definitions as of
from monitor.web.metrics.definitions import MetricDefinition
from monitor.web.metrics.text_format import Family

if TYPE_CHECKING:
    from monitor.web.metrics.scope import ScrapeScope


_VALUES: Sequence[tuple[MetricDefinition, Callable[[ReporterStatus], float | None]]] = (
    (of.REPORTER_SEEN, lambda status: status.seen_at.timestamp()),
    (of.SPOOL_RECORDS, lambda status: status.spool_records),
    (of.SPOOL_BYTES, lambda status: status.spool_bytes),
    (of.SPOOL_LAG, lambda status: status.lag_seconds),
    (of.DROPPED, lambda status: status.dropped_records),
    (of.CLOCK_OFFSET, lambda status: status.clock_offset_seconds),
)


def collect(scope: ScrapeScope) -> Iterator[Family]:
    rows = ReporterStatus.objects.filter(reporter__in=scope.reporters()).select_related("reporter")
    statuses = list(rows.order_by("reporter__sort_name"))
    for definition, value in _VALUES:
        family = Family(definition)
        for status in statuses:
            if (number := value(status)) is not None:
                family.add(number, status.reporter.name)
        yield family
