"""Which segment of its series a report belongs to, and which metrics its numbers; what is new is begun."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Max

from monitor.db import binary
from monitor.ingest.extract_metrics import units
from monitor.models import Metric, Segment

if TYPE_CHECKING:
    from monitor.ingest.fast_parser import ParsedReport
    from monitor.models.segment import Identity

Of = tuple[int, str]  # a segment: the key of its series, and its fingerprint

_KNOWN = """
SELECT segment.series_id, segment.fingerprint, segment.id, segment.began_at,
    coalesce(array_agg(metric.name) FILTER (WHERE metric.id IS NOT NULL), '{}'), array_agg(metric.id)
FROM unnest(%b::bigint[], %b::text[]) AS said (series, fingerprint)
JOIN monitor_segment AS segment ON (segment.series_id, segment.fingerprint) = (said.series, said.fingerprint)
LEFT JOIN monitor_metric AS metric ON metric.segment_id = segment.id
GROUP BY segment.id
"""


class Measured(NamedTuple):
    """What a report of a series (its key) measured: its numbers by name."""

    series: int
    report: ParsedReport
    values: Mapping[str, float]

    @property
    def of(self) -> Of:
        return self.series, self.report.measured.fingerprint


@dataclass
class Wanted:
    """A segment that reports belong to: the earliest slot, and by name a report that tells each metric."""

    measured: Identity
    earliest: datetime
    telling: dict[str, ParsedReport] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """A segment that is there, by its key, and the keys of its metrics by name."""

    segment: int
    began_at: datetime
    metrics: Mapping[str, int]


def metrics(measured: Sequence[Measured]) -> list[Mapping[str, int]]:
    """By name, the keys of the metrics of the segment that each belongs to by what its report says.

    A new segment is begun by the first of its reports. To be called in a transaction.
    """
    if not measured:
        return []
    of = [one.of for one in measured]
    wanted = _wanted(of, measured)
    known = _known(wanted)
    while missing := {one: wanted[one] for one in wanted if one not in known}:
        _begin(missing)
        known.update(_known(missing))
    _begin_earlier((known[one], wanted[one].earliest) for one in wanted)
    known.update(_with_metrics(wanted, known))
    return [known[one].metrics for one in of]


def _wanted(of: Iterable[Of], measured: Iterable[Measured]) -> dict[Of, Wanted]:
    """The segments that they belong to, series by series in the order in which they begin."""
    found: dict[Of, Wanted] = {}
    for one, (_, report, values) in zip(of, measured, strict=True):
        wanted = found.get(one)
        if wanted is None:
            wanted = found[one] = Wanted(report.measured, report.slot)
        elif report.slot < wanted.earliest:
            wanted.earliest = report.slot
        if not values.keys() <= wanted.telling.keys():
            wanted.telling.update(dict.fromkeys(values, report))
    return dict(sorted(found.items(), key=lambda item: (item[0][0], item[1].earliest, item[0][1])))


def _known(wanted: Iterable[Of]) -> dict[Of, Known]:
    """Those of *wanted* that are there."""
    series, fingerprints = zip(*wanted, strict=True)
    with binary.cursor() as cursor:
        cursor.execute(_KNOWN, [list(series), list(fingerprints)])
        return {
            (of, fingerprint): Known(segment, began_at, dict(zip(names, keys, strict=False)))
            for of, fingerprint, segment, began_at, names, keys in cursor.fetchall()
        }


def _begin(missing: Mapping[Of, Wanted]) -> None:
    """Make segments, one of each series: if it has several they are begun one after another.

    If somebody else begins one at the same time there is his, or the number is taken: the caller looks again.
    """
    first = {of[0]: of for of in reversed(list(missing))}
    numbered = Segment.objects.filter(series__in=first).order_by().values_list("series_id")
    last = dict(numbered.annotate(last=Max("number")))
    Segment.objects.bulk_create(
        (
            _segment(series, last.get(series, 0) + 1, of[1], missing[of])
            for series, of in sorted(first.items())
        ),
        ignore_conflicts=True,
    )


def _segment(series: int, number: int, fingerprint: str, begun: Wanted) -> Segment:
    measured = begun.measured
    return Segment(
        series_id=series,
        number=number,
        fingerprint=fingerprint,
        began_at=begun.earliest,
        probe=measured.probe,
        probe_version=measured.probe_version,
        parameters=dict(measured.parameters),
        bindings={role: list(names) for role, names in measured.bindings.items()},
    )


def _begin_earlier(slots: Iterable[tuple[Known, datetime]]) -> None:
    """Let a segment begin with the earliest slot that it has values of."""
    for known, slot in sorted(slots, key=lambda pair: pair[0].segment):
        if slot < known.began_at:
            Segment.objects.filter(pk=known.segment, began_at__gt=slot).update(began_at=slot)


def _with_metrics(wanted: Mapping[Of, Wanted], known: Mapping[Of, Known]) -> dict[Of, Known]:
    """Those of *wanted* that lacked a metric, when it has been made."""
    lacking = [of for of, one in wanted.items() if not known[of].metrics.keys() >= one.telling.keys()]
    if not lacking:
        return {}
    made = [metric for of in lacking for metric in _missing_metrics(wanted[of], known[of])]
    made.sort(key=lambda metric: (metric.segment_id, metric.name))
    Metric.objects.bulk_create(made, ignore_conflicts=True)
    return _known(lacking)


def _missing_metrics(wanted: Wanted, known: Known) -> Iterator[Metric]:
    """Those that are told of and not there; each report is asked for its units once, however many it has."""
    reports = {id(report): report for report in wanted.telling.values()}
    units_of = {key: units(report) for key, report in reports.items()}
    for name, report in wanted.telling.items():
        if name not in known.metrics:
            yield Metric(segment_id=known.segment, name=name, unit=units_of[id(report)][name])
