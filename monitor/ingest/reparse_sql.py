"""Raw reports that are to be read again, the samples that were made of them, and how these are exchanged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    import uuid

_NEXT = """
SELECT raw.run_id, raw.slot, run.series_id
FROM monitor_rawreport AS raw JOIN monitor_run AS run ON run.id = raw.run_id AND run.slot = raw.slot
WHERE raw.parsed_by < %(version)s AND (raw.slot, raw.run_id) > (%(slot)s, %(run)s) AND raw.slot >= %(slot)s
    AND run.slot >= %(slot)s AND (%(series)s::bigint[] IS NULL OR run.series_id = ANY (%(series)s::bigint[]))
ORDER BY raw.slot, raw.run_id LIMIT %(at_most)s
"""
# Locked as who stores reports locks them.
_LOCK = """
SELECT run.id FROM unnest(%s::uuid[], %s::timestamptz[]) AS said (run, slot)
JOIN monitor_run AS run ON run.id = said.run AND run.slot = said.slot AND run.slot BETWEEN %s AND %s
ORDER BY run.id FOR NO KEY UPDATE OF run
"""
_BODIES = """
SELECT raw.run_id, packing, packed FROM unnest(%s::uuid[], %s::timestamptz[]) AS said (run, slot)
JOIN monitor_rawreport AS raw ON raw.run_id = said.run AND raw.slot = said.slot
WHERE raw.slot BETWEEN %s AND %s AND parsed_by < %s
"""
_SAMPLES = """
SELECT segment.series_id, sample.time, sample.metric_id, segment.id, known_at, value, passed
FROM (SELECT DISTINCT * FROM unnest(%s::bigint[], %s::timestamptz[]) AS said (series, slot)) AS said
JOIN monitor_segment AS segment ON segment.series_id = said.series
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
JOIN monitor_sample AS sample ON sample.metric_id = metric.id AND sample.time = said.slot
WHERE sample.time BETWEEN %s AND %s
"""
_DELETE = """
DELETE FROM monitor_sample AS sample USING unnest(%s::bigint[], %s::timestamptz[]) AS said (metric, slot)
WHERE sample.metric_id = said.metric AND sample.time = said.slot AND sample.time BETWEEN %s AND %s
"""
_PUT = """
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[], %s::float8[], %s::boolean[])
ON CONFLICT (metric_id, time) DO UPDATE
SET known_at = EXCLUDED.known_at, value = EXCLUDED.value, passed = EXCLUDED.passed
"""
_PARSED = """
UPDATE monitor_rawreport AS raw SET parsed_by = %s
FROM unnest(%s::uuid[], %s::timestamptz[]) AS said (run, slot)
WHERE raw.run_id = said.run AND raw.slot = said.slot AND raw.slot BETWEEN %s AND %s
"""


@dataclass(frozen=True)
class Reported:
    """A run that has a raw report, by its key in the ledger."""

    run: uuid.UUID
    slot: datetime
    series: int


@dataclass(frozen=True)
class Sampled:
    """A sample as it is, or is to be; *segment* is the key of its metric's, 0 where nobody asks for it."""

    series: int
    time: datetime
    metric: int
    segment: int
    known_at: datetime
    value: float
    passed: bool

    @property
    def said(self) -> tuple[datetime, float, bool]:
        return self.known_at, self.value, self.passed


def after(
    slot: datetime, run: uuid.UUID, *, version: int, series: Collection[int] | None, at_most: int
) -> list[Reported]:
    """The next runs whose reports were read by an older *version*, in order of (slot, run)."""
    told: dict[str, Any] = {
        "slot": slot,
        "run": run,
        "version": version,
        "series": None if series is None else list(series),
        "at_most": at_most,
    }
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, told)
        return [Reported(*row) for row in cursor.fetchall()]


def locked(runs: Sequence[Reported], *, version: int) -> dict[uuid.UUID, tuple[int, bytes]]:
    """By run, its report as it was packed, of those still read by an older version than *version*.

    Nobody else changes what they say until the end of the transaction.
    """
    said: list[Any] = [[one.run for one in runs], [one.slot for one in runs], *_between(runs)]
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, said)
        cursor.execute(_BODIES, [*said, version])
        return {run: (packing, bytes(packed)) for run, packing, packed in cursor.fetchall()}


def samples(runs: Sequence[Reported]) -> list[Sampled]:
    """Everything that *runs* measured, as it is now, in whatever segment."""
    said: list[Any] = [[one.series for one in runs], [one.slot for one in runs], *_between(runs)]
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLES, said)
        return [Sampled(*row) for row in cursor.fetchall()]


def exchange(gone: Sequence[Sampled], put: Sequence[Sampled]) -> None:
    """Take *gone* away, and let *put* be as they say."""
    with connection.cursor() as cursor:
        if gone:
            times = [one.time for one in gone]
            cursor.execute(_DELETE, [[one.metric for one in gone], times, min(times), max(times)])
        if put:
            columns = zip(*((one.metric, one.time, *one.said) for one in put), strict=True)
            cursor.execute(_PUT, [list(column) for column in columns])


def parsed(runs: Sequence[Reported], *, version: int) -> None:
    """The samples of *runs* are what *version* makes of their reports."""
    with connection.cursor() as cursor:
        said: list[Any] = [[one.run for one in runs], [one.slot for one in runs], *_between(runs)]
        cursor.execute(_PARSED, [version, *said])


def _between(runs: Iterable[Reported]) -> tuple[datetime, datetime]:
    """For the database to look at the parts of that time alone."""
    slots = [one.slot for one in runs]
    return min(slots), max(slots)
