"""Export the values of a series as a file, chunk by chunk: memory does not grow with the number of values."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from monitor.core.db.snapshot import snapshot
from monitor.depot.rollups.statistics import seconds_since
from monitor.depot.samples import formats
from monitor.depot.samples.formats.base import Value
from monitor.depot.samples.read import stream
from monitor.models import Metric, Run
from monitor.models.run import ENDED, REPORTED, RunQuerySet, State

if TYPE_CHECKING:
    from monitor.models import Series

TOTAL = "total.seconds"
STREAMED_RUNS = 5_000  # fetched from the server at a time
TIME_LIMIT_SECONDS = 3600.0  # retention waits for the snapshot of a slow reader

SampleColumns = tuple[datetime, int, datetime, float]  # time, metric, known at, value


class ExportTimeout(Exception):
    """The reader did not fetch all chunks in time; the message names the limit."""


@dataclass(frozen=True)
class ExportFile:
    """A file to download.

    Attributes:
        chunks: the content, generated while it is read, from one snapshot. A reader that stops early must
            close the iterator; if a reader is too slow, the iterator raises ``ExportTimeout``.
        newest_ended_at: end of the last run with a report; None if no run has a report.
    """

    name: str
    media_type: str
    chunks: Iterator[bytes]
    newest_ended_at: datetime | None

    def headers(self, now: datetime) -> dict[str, str]:
        """Return the headers of the HTTP answer, among them the age of the data at *now*."""
        headers = {"Content-Disposition": f'attachment; filename="{self.name}"'}
        if self.newest_ended_at is not None:
            headers["Data-Age-Seconds"] = f"{seconds_since(self.newest_ended_at, now):.1f}"
        return headers


def export(
    series: Series,
    form: str,
    *,
    start: datetime | None,
    end: datetime | None = None,
    label: str,
    within_seconds: float = TIME_LIMIT_SECONDS,
) -> ExportFile:
    """Return a file with the ``values`` of *series* in the format *form*.

    The name of the file contains the name of the series and *label*. The reader must fetch all chunks within
    *within_seconds*.

    Raises:
        UnknownFormat: there is no format *form*.
    """
    file_format = formats.load(form)(series.name)
    chunks = _chunks(file_format.chunks, values(series, start=start, end=end), within_seconds)
    newest = _ended_runs(series, start, end).filter(state__in=REPORTED).order_by("-slot")
    newest_ended_at = newest.values_list("ended_at", flat=True).first()
    name = f"{series.name}-{label}.{file_format.suffix}"
    return ExportFile(name, file_format.media_type, chunks, newest_ended_at)


def _chunks(
    encode: Callable[[Iterable[Value]], Iterator[bytes]],
    exported: Generator[Value, None, None],
    within_seconds: float,
) -> Iterator[bytes]:
    """Yield the encoded values; their transaction ends after the last chunk, or when the reader stops."""
    until = time.monotonic() + within_seconds
    with closing(exported):
        for chunk in encode(exported):
            if time.monotonic() > until:
                raise ExportTimeout(f"the export was not read in {within_seconds:g} s")
            yield chunk


def values(series: Series, *, start: datetime | None, end: datetime | None) -> Generator[Value, None, None]:
    """Yield the values of ended runs from *start* until before *end*, oldest first, from one snapshot.

    See ``Value`` for runs that did not pass.
    """
    with snapshot():
        metrics = {
            metric.pk: metric
            for metric in Metric.objects.filter(segment__series=series).select_related("segment")
        }
        samples = groupby(stream(metrics, start=start, end=end), key=itemgetter(0))
        slot, of_slot = next(samples, (None, ()))
        runs = _ended_runs(series, start, end).order_by("slot").values_list("slot", "state")
        for run_slot, state in runs.iterator(chunk_size=STREAMED_RUNS):
            while slot is not None and slot < run_slot:
                slot, of_slot = next(samples, (None, ()))
            yield from _run_values(run_slot, state, of_slot if slot == run_slot else (), metrics)


def _ended_runs(series: Series, start: datetime | None, end: datetime | None) -> RunQuerySet:
    runs = Run.objects.filter(series=series, state__in=ENDED)
    if start is not None:
        runs = runs.filter(slot__gte=start)
    if end is not None:
        runs = runs.filter(slot__lt=end)
    return runs


def _run_values(
    slot: datetime, state: str, samples: Iterable[SampleColumns], metrics: dict[int, Metric]
) -> Iterator[Value]:
    segment = None
    for _, pk, known_at, value in samples:
        metric = metrics[pk]
        segment = metric.segment.number
        yield Value(metric.name, slot, known_at, value, metric.unit, state, segment)
    if state != State.PASSED:
        yield Value(TOTAL, slot, None, None, "seconds", state, segment)
