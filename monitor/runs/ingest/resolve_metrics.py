"""Resolve the segment and the metrics of each report; create missing segments and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Count, Max

from monitor.core.db import binary
from monitor.core.db.array_parameters import Arrays
from monitor.models import Metric, Segment
from monitor.runs.ingest.extract_metrics import units

if TYPE_CHECKING:
    import uuid

    from monitor.models.segment import SegmentIdentity
    from monitor.runs.ingest.fast_parser import ParsedReport

MOST_IN_SEGMENT = 2_000  # metrics
MOST_IN_SERIES = 20_000  # in all its segments
SegmentKey = tuple[int, str]  # the key of its series, and its fingerprint

_WANTED = Arrays("int8", "text")
# Read by position: this runs for every report.
_KNOWN = f"""
SELECT segment.series_id, segment.fingerprint, segment.id, segment.began_at,
    coalesce(array_agg(metric.name) FILTER (WHERE metric.id IS NOT NULL), '{{}}'), array_agg(metric.id)
FROM unnest({_WANTED.placeholders}) AS wanted (series, fingerprint)
JOIN monitor_segment AS segment
    ON (segment.series_id, segment.fingerprint) = (wanted.series, wanted.fingerprint)
LEFT JOIN monitor_metric AS metric ON metric.segment_id = segment.id
GROUP BY segment.id
"""  # noqa: S608  # constants


class MeasuredReport(NamedTuple):
    """A report, the key of its series, and its values by metric name."""

    series: int
    parsed: ParsedReport
    values: Mapping[str, float]

    @property
    def segment(self) -> SegmentKey:
        return self.series, self.parsed.measured.fingerprint


@dataclass
class WantedSegment:
    """A segment that reports need.

    Attributes:
        measured: the identity of the segment.
        earliest: the earliest slot of the reports.
        reports: for each metric, by name, a report that contains it.
    """

    measured: SegmentIdentity
    earliest: datetime
    reports: dict[str, ParsedReport] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownSegment:
    """A segment in the depot: its key, its beginning, and the keys of its metrics by name."""

    segment: int
    began_at: datetime
    metric_ids: Mapping[str, int]


class TooManyMetrics(Exception):
    """Reports have metrics beyond the limit of their series; *refused* has the reason by run."""

    def __init__(self, refused: Mapping[uuid.UUID, str]) -> None:
        super().__init__("; ".join(refused.values()))
        self.refused = refused


def metric_ids(measured: Sequence[MeasuredReport], *, is_limited: bool = True) -> list[Mapping[str, int]]:
    """Return, for each report, the keys of its segment's metrics by name; must be called in a transaction.

    Missing segments and metrics are created; if *is_limited*, up to ``MOST_IN_SEGMENT`` and
    ``MOST_IN_SERIES``, or somewhat more if concurrent transactions add some.

    Raises:
        TooManyMetrics: roll the transaction back, and store the other reports.
    """
    if not measured:
        return []
    segments = [report.segment for report in measured]  # computing a fingerprint once per report
    wanted = _wanted(segments, measured)
    known_segments = _known(wanted)
    while missing := {key: wanted[key] for key in wanted if key not in known_segments}:
        _create_segments(missing)
        known_segments.update(_known(missing))
    _begin_earlier((known_segments[key], wanted[key].earliest) for key in wanted)
    if lacking := _lacking(wanted, known_segments):
        if is_limited:
            _refuse_beyond_limits(zip(segments, measured, strict=True), lacking, known_segments)
        known_segments.update(_with_new_metrics(lacking, wanted, known_segments))
    return [known_segments[key].metric_ids for key in segments]


def _wanted(
    segments: Iterable[SegmentKey], measured: Iterable[MeasuredReport]
) -> dict[SegmentKey, WantedSegment]:
    """Return the distinct segments, sorted by series, then by earliest slot.

    *segments* has the key of the segment of each report in *measured*.
    """
    wanted: dict[SegmentKey, WantedSegment] = {}
    for key, (_, report, values) in zip(segments, measured, strict=True):
        segment = wanted.get(key)
        if segment is None:
            segment = wanted[key] = WantedSegment(report.measured, report.slot)
        elif report.slot < segment.earliest:
            segment.earliest = report.slot
        if not values.keys() <= segment.reports.keys():
            segment.reports.update(dict.fromkeys(values, report))
    return dict(sorted(wanted.items(), key=lambda item: (item[0][0], item[1].earliest, item[0][1])))


def _known(wanted: Iterable[SegmentKey]) -> dict[SegmentKey, KnownSegment]:
    """Return the segments of *wanted* that exist."""
    with binary.cursor() as cursor:
        cursor.execute(_KNOWN, _WANTED.pack(zip(*wanted, strict=True)), binary=True)
        return {
            (series_key, fingerprint): KnownSegment(segment, began_at, dict(zip(names, keys, strict=False)))
            for series_key, fingerprint, segment, began_at, names, keys in cursor.fetchall()
        }


def _create_segments(missing: Mapping[SegmentKey, WantedSegment]) -> None:
    """Create the first missing segment of each series, with the next number.

    If a series lacks several segments, the caller calls again. If a concurrent transaction has created the
    segment or has used the number, no row is inserted: the caller reads the segments again.
    """
    first = {key[0]: key for key in reversed(list(missing))}
    numbered = Segment.objects.filter(series__in=first).order_by().values_list("series_id")
    last_numbers = dict(numbered.annotate(last=Max("number")))
    Segment.objects.bulk_create(
        (
            _segment(series, last_numbers.get(series, 0) + 1, key[1], missing[key])
            for series, key in sorted(first.items())
        ),
        ignore_conflicts=True,
    )


def _segment(series: int, number: int, fingerprint: str, wanted: WantedSegment) -> Segment:
    measured = wanted.measured
    return Segment(
        series_id=series,
        number=number,
        fingerprint=fingerprint,
        began_at=wanted.earliest,
        probe=measured.probe,
        probe_version=measured.probe_version,
        parameters=dict(measured.parameters),
        bindings={role: list(names) for role, names in measured.bindings.items()},
    )


def _begin_earlier(slots: Iterable[tuple[KnownSegment, datetime]]) -> None:
    """Move the beginning of each segment back to the given slot, unless the segment begins earlier."""
    for known_segment, slot in sorted(slots, key=lambda pair: pair[0].segment):
        if slot < known_segment.began_at:
            Segment.objects.filter(pk=known_segment.segment, began_at__gt=slot).update(began_at=slot)


def _lacking(
    wanted: Mapping[SegmentKey, WantedSegment], known_segments: Mapping[SegmentKey, KnownSegment]
) -> list[SegmentKey]:
    """Return the segments that lack a metric of their reports."""
    return [
        key
        for key, segment in wanted.items()
        if not known_segments[key].metric_ids.keys() >= segment.reports.keys()
    ]


def _refuse_beyond_limits(
    reports: Iterable[tuple[SegmentKey, MeasuredReport]],
    lacking: Iterable[SegmentKey],
    known_segments: Mapping[SegmentKey, KnownSegment],
) -> None:
    """Raise TooManyMetrics if reports of the segments *lacking* metrics add more than permitted."""
    names = {key: set(known_segments[key].metric_ids) for key in lacking}
    rows = Metric.objects.filter(segment__series__in={series for series, _ in names}).order_by()
    in_series = Counter(dict(rows.values_list("segment__series").annotate(Count("pk"))))
    refused = {}
    for key, report in reports:
        new = report.values.keys() - names.get(key, report.values.keys())
        if not new:
            continue
        known, of_series = len(names[key]), in_series[report.series]
        if known + len(new) > MOST_IN_SEGMENT:
            limit = f"{MOST_IN_SEGMENT:,} metrics between two changes of its setup, and has {known:,}"
        elif of_series + len(new) > MOST_IN_SERIES:
            limit = f"{MOST_IN_SERIES:,} metrics in total, and has {of_series:,}"
        else:
            names[key] |= new
            in_series[report.series] += len(new)
            continue
        shown = ", ".join(sorted(new)[:3])
        refused[report.parsed.run] = (
            f"metrics: a series may have {limit}; the report adds {len(new):,}: {shown}"
        )
    if refused:
        raise TooManyMetrics(refused)


def _with_new_metrics(
    lacking: Sequence[SegmentKey],
    wanted: Mapping[SegmentKey, WantedSegment],
    known_segments: Mapping[SegmentKey, KnownSegment],
) -> dict[SegmentKey, KnownSegment]:
    """Create the metrics that the segments *lacking* them need; return these segments with all metrics."""
    created = [metric for key in lacking for metric in _missing_metrics(wanted[key], known_segments[key])]
    created.sort(key=lambda metric: (metric.segment_id, metric.name))
    Metric.objects.bulk_create(created, ignore_conflicts=True)
    return _known(lacking)


def _missing_metrics(wanted: WantedSegment, known_segment: KnownSegment) -> Iterator[Metric]:
    """Yield a metric for each name that the segment lacks; the units of a report are computed only once."""
    reports = {id(report): report for report in wanted.reports.values()}
    units_of = {key: units(report) for key, report in reports.items()}
    for name, report in wanted.reports.items():
        if name not in known_segment.metric_ids:
            yield Metric(segment_id=known_segment.segment, name=name, unit=units_of[id(report)][name])
