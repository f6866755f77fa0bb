"""What happened to a series in a time range: holds, maintenance, alerts, segments, level shifts."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.urls import reverse

from monitor.core.db.timestamps import moment
from monitor.core.units import humanised
from monitor.depot.series.segment_diff import segment_changes
from monitor.models import Alert, Hold, MaintenanceWindow
from monitor.runs.maintenance.times import occurrences
from monitor.runs.maintenance.windows import times_of
from monitor.web.charts.level_shifts import level_shifts
from monitor.web.charts.series_chart import RunChart
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from monitor.models import Segment, Series
    from monitor.web.charts.interval_chart import IntervalChart

logger = logging.getLogger(__name__)
MOST = 50  # of each kind


class AnnotationKind(StrEnum):
    HOLD = "pause"
    MAINTENANCE = "maintenance"
    ALERT = "alert"
    SEGMENT = "configuration"
    LEVEL_SHIFT = "level shift"


@dataclass(frozen=True)
class Annotation:
    """An event on the time axis; *end* is None for an instant, and for what lasts."""

    kind: AnnotationKind
    text: str
    start: datetime
    end: datetime | None = None
    url: str = ""
    is_open: bool = False

    def as_json(self, until: datetime, zone: tzinfo = UTC) -> dict[str, Any]:
        """Return the event for the browser, cut at *until*, with times of *zone*."""
        end = until if self.is_open else self.end
        return {
            "kind": self.kind,
            "text": self.text,
            "start": f"{self.start.astimezone(zone):%Y-%m-%d %H:%M:%S}",
            "end": f"{min(end, until).astimezone(zone):%Y-%m-%d %H:%M:%S}" if end else None,
        }


def annotations_of(
    series: Series,
    segments: Sequence[Segment],
    chart: RunChart | IntervalChart,
    start: datetime | None,
    end: datetime,
) -> list[Annotation]:
    """Return the events from *start* until before *end*, newest first, at most ``MOST`` of each kind.

    Holds and maintenance are those that cover *series*; *segments* are sorted by time.
    """
    found = [
        *_holds(series, start, end),
        *(_maintenance(series, start, end) if start else ()),
        *_alerts(series, start, end),
        *_segments(segments, start, end),
        *_level_shifts(chart),
    ]
    return sorted(found, key=lambda each: each.start, reverse=True)


def _holds(series: Series, start: datetime | None, end: datetime) -> Iterator[Annotation]:
    holds = Hold.objects.over(series).filter(began_at__lt=end)
    if start:
        holds = holds.exclude(ended_at__lte=start).exclude(until__lte=start)
    for hold in holds.order_by("-began_at")[:MOST]:
        until = hold.ended_at or hold.until
        url = reverse("holds")
        yield Annotation(
            AnnotationKind.HOLD,
            f"{hold.scope} {hold.reason}",
            hold.began_at,
            until,
            url,
            is_open=until is None,
        )


def _maintenance(series: Series, start: datetime, end: datetime) -> Iterator[Annotation]:
    sites = series.bindings.order_by().values("resource__site")
    windows = MaintenanceWindow.objects.not_over(start).filter(Q(sites=None) | Q(sites__in=sites)).distinct()
    url = f"{reverse('holds')}#maintenance"
    for window in windows:
        try:
            found = list(islice(occurrences(times_of(window), start, end), MOST + 1))
        except InvalidSchedule as error:
            logger.error("maintenance window %s is ignored: %s", window.name, error)
            continue
        if len(found) > MOST:
            text = f"{window}, more than {MOST} times"
            yield Annotation(AnnotationKind.MAINTENANCE, text, max(found[0].starts_at, start), url=url)
            continue
        for each in found:
            yield Annotation(AnnotationKind.MAINTENANCE, str(window), each.starts_at, each.ends_at, url)


def _alerts(series: Series, start: datetime | None, end: datetime) -> Iterator[Annotation]:
    alerts = Alert.objects.filter(series=series, since__lt=end).select_related("rule")
    if start:
        alerts = alerts.exclude(closed_at__lte=start)
    for alert in alerts.order_by("-since")[:MOST]:
        name = alert.rule.title or alert.rule.name
        yield Annotation(
            AnnotationKind.ALERT, f"{name}: {alert.text}", alert.since, alert.closed_at, reverse("alerts"),
            is_open=alert.closed_at is None,
        )  # fmt: skip


def _segments(segments: Sequence[Segment], start: datetime | None, end: datetime) -> Iterator[Annotation]:
    starts = (
        (old, new)
        for old, new in pairwise(segments)
        if (not start or new.began_at >= start) and new.began_at < end
    )
    for old, new in list(starts)[-MOST:]:
        words = ", ".join(map(str, segment_changes(old, new)))
        yield Annotation(
            AnnotationKind.SEGMENT, f"segment {new.number}: {words}", new.began_at, url="#segments"
        )


def _level_shifts(chart: RunChart | IntervalChart) -> Iterator[Annotation]:
    """Yield where the level of the values changes within a segment."""
    for times, values in _sequences(chart):
        positions = level_shifts(values)
        for before, at, after in zip([0, *positions], positions, [*positions[1:], len(values)], strict=False):
            old, new = (_median(values[first:last]) for first, last in ((before, at), (at, after)))
            text = f"median {humanised(old, chart.unit)} -> {humanised(new, chart.unit)}"
            yield Annotation(AnnotationKind.LEVEL_SHIFT, text, times[at])


def _sequences(chart: RunChart | IntervalChart) -> Iterable[tuple[list[datetime], list[float]]]:
    """Yield times and values of each segment: of passed runs, or medians of intervals."""
    if isinstance(chart, RunChart):
        for segment in dict.fromkeys(each for each in chart.segments if each is not None):
            rows = zip(chart.runs, chart.segments, chart.values, strict=True)
            own = [(run.slot, value) for run, of, value in rows if of == segment and value is not None]
            yield [slot for slot, _ in own], [value for _, value in own]
        return
    for part in chart.segments:
        yield [moment(start) for start in part.bands.start.tolist()], part.bands.quantiles[:, 1].tolist()


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
