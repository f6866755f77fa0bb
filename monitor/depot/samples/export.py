"""The values of a series in a form to take away, piece by piece: however many there are, they never lie in
memory at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from monitor.db.snapshot import snapshot
from monitor.depot.rollups.statistics import seconds_since
from monitor.depot.samples import formats
from monitor.depot.samples.formats.base import Value
from monitor.depot.samples.read import each_value
from monitor.models import Metric, Run
from monitor.models.run import ENDED, REPORTED, RunQuerySet, State

if TYPE_CHECKING:
    from monitor.models import Series

TOTAL = "total.seconds"
RUNS = 5_000  # at a time
# Retention waits for who reads, however slowly he does.
WITHIN_SECONDS = 3600.0

Measured = tuple[datetime, int, datetime, float]


class TooSlow(Exception):
    """Not all was taken in time; says in which."""


@dataclass(frozen=True)
class File:
    """What is taken away: *chunks* are made as they are asked for, all of what there is when the first is.
    Who does not take all of them closes them; who is too slow gets ``TooSlow``.

    They are the samples themselves, whatever rollups have; *newest_ended_at* is when the last run that
    reported ended, None without any.
    """

    name: str
    media_type: str
    chunks: Iterator[bytes]
    newest_ended_at: datetime | None

    def headers(self, now: datetime) -> dict[str, str]:
        """What an answer says of it, its age at *now* among them."""
        said = {"Content-Disposition": f'attachment; filename="{self.name}"'}
        if self.newest_ended_at is not None:
            said["Data-Age-Seconds"] = f"{seconds_since(self.newest_ended_at, now):.1f}"
        return said


def export(
    series: Series,
    form: str,
    *,
    start: datetime | None,
    end: datetime | None = None,
    label: str,
    within_seconds: float = WITHIN_SECONDS,
) -> File:
    """``values`` in *form*; *label* ends the file's name. Raises UnknownFormat."""
    made = formats.load(form)(series.name)
    chunks = _closed_with(made.chunks, values(series, start=start, end=end), within_seconds)
    newest = _runs(series, start, end).filter(state__in=REPORTED).order_by("-slot")
    newest_ended_at = newest.values_list("ended_at", flat=True).first()
    return File(f"{series.name}-{label}.{made.suffix}", made.media_type, chunks, newest_ended_at)


def _closed_with(
    chunks: Callable[[Iterable[Value]], Iterator[bytes]],
    those: Generator[Value, None, None],
    within_seconds: float,
) -> Iterator[bytes]:
    """Of *those* values, whose transaction ends with the last chunk, or when no more is wanted."""
    until = time.monotonic() + within_seconds
    with closing(those):
        for chunk in chunks(those):
            if time.monotonic() > until:
                raise TooSlow(f"not all was taken in {within_seconds:g} s")
            yield chunk


def values(series: Series, *, start: datetime | None, end: datetime | None) -> Generator[Value, None, None]:
    """Every value of every run that ended, of slots from *start* until before *end*, oldest first; see
    ``Value`` for runs that did not pass. All as it was when the first was asked for."""
    with snapshot():
        yield from _values(series, start, end)


def _values(series: Series, start: datetime | None, end: datetime | None) -> Iterator[Value]:
    metrics = {one.pk: one for one in Metric.objects.filter(segment__series=series).select_related("segment")}
    measured = groupby(each_value(metrics, start=start, end=end), key=itemgetter(0))
    slot, of_slot = next(measured, (None, ()))
    for run_slot, state in _ended(series, start, end):
        while slot is not None and slot < run_slot:
            slot, of_slot = next(measured, (None, ()))
        yield from _of_run(run_slot, state, of_slot if slot == run_slot else (), metrics)


def _ended(series: Series, start: datetime | None, end: datetime | None) -> Iterator[tuple[datetime, str]]:
    """(slot, how it ended) of each run, oldest first."""
    runs = _runs(series, start, end).order_by("slot")
    return runs.values_list("slot", "state").iterator(chunk_size=RUNS)


def _runs(series: Series, start: datetime | None, end: datetime | None) -> RunQuerySet:
    """Those that ended, of slots from *start* until before *end*."""
    runs = Run.objects.filter(series=series, state__in=ENDED)
    if start is not None:
        runs = runs.filter(slot__gte=start)
    if end is not None:
        runs = runs.filter(slot__lt=end)
    return runs


def _of_run(
    slot: datetime, state: str, measured: Iterable[Measured], metrics: dict[int, Metric]
) -> Iterator[Value]:
    segment = None
    for _, pk, known_at, value in measured:
        metric = metrics[pk]
        segment = metric.segment.number
        yield Value(metric.name, slot, known_at, value, metric.unit, state, segment)
    if state != State.PASSED:
        yield Value(TOTAL, slot, None, None, "seconds", state, segment)
