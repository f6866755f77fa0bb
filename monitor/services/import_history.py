"""Import what others measured: their runs become runs of series here, as if they had been reported in
time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO

import msgspec
from django.utils import timezone

from monitor.importers.base import Importer, LeftOut, Malformed, Measured, Unreadable
from monitor.models import RawReport, Run
from monitor.models.run import REPORTED
from monitor.services.imported import Destination, Target, destination, settle
from monitor.services.ingest import ingest_all
from reporters import report as wire

if TYPE_CHECKING:
    import uuid

BATCH = 1000
REPORTER = "import"
_TRIGGER_CHARACTERS = 900


@dataclass
class Tally:
    """What has come of an import so far; *left_out* by why."""

    new: int = 0
    known: int = 0
    malformed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    series: set[str] = field(default_factory=set)

    @property
    def runs(self) -> int:
        return self.new + self.known


@dataclass(frozen=True)
class Listener:
    """Who is told of what cannot be read, when it is met, and of the tally, after every batch."""

    malformed: Callable[[Malformed], None]
    progress: Callable[[Tally], None]


class Stopped(Exception):
    """Something could not be read, and that was to be the end; what came before it is stored."""


def import_history(
    importer: Importer,
    stream: BinaryIO,
    target: Target,
    file: str,
    listener: Listener,
    *,
    strict: bool = False,
) -> Tally:
    """Store all runs in *stream*, which is *file* by name; those that are there already stay as they are.

    It goes forward in batches, each stored as a whole: interrupted, it may begin anew.

    Raises:
        Unreadable, NotImported: it cannot go on; Stopped: with *strict*, after the first that is malformed.
            What came before is stored.
        NoRoom: the depot is full; DatabaseError: it is away.
    """
    importing = _Import(target, file, listener)
    batch: list[Measured] = []
    try:
        for item in importer.read(stream):
            if isinstance(item, Measured):
                batch.append(item)
                if len(batch) == BATCH:
                    importing.store(batch)
                    batch = []
            elif isinstance(item, LeftOut):
                importing.tally.left_out[item.why] += 1
            else:
                importing.refuse(item)
                if strict:
                    raise Stopped(str(item))
    except (Unreadable, Stopped):
        importing.store(batch)
        importing.end()
        raise
    importing.store(batch)
    importing.end()
    return importing.tally


class _Import:
    """One import under way."""

    def __init__(self, target: Target, file: str, listener: Listener) -> None:
        self.tally = Tally()
        self._target, self._file, self._listener = target, file, listener
        self._trigger = f"import: {target.kind} {file}"[:_TRIGGER_CHARACTERS]
        self._began_at = timezone.now()
        self._destinations: dict[str, Destination] = {}

    def refuse(self, malformed: Malformed) -> None:
        self.tally.malformed += 1
        self._listener.malformed(malformed)

    def store(self, batch: Sequence[Measured]) -> None:
        """Store those that are not there yet."""
        if not batch:
            return
        identified = [(self._identity(one), one) for one in batch]
        there = self._there([run for run, _ in identified], batch)
        new: dict[uuid.UUID, Measured] = {}
        for run, one in identified:
            if run in new or there.get(run):
                self._refuse_repeated(one)
            elif run in there:
                self.tally.known += 1
            else:
                new[run] = one
        if new:
            self._write(new)
        self._listener.progress(self.tally)

    def end(self) -> None:
        for one in self._destinations.values():
            settle(one)

    def _identity(self, one: Measured) -> uuid.UUID:
        to = self._destinations.get(one.series)
        if to is None:
            to = self._destinations[one.series] = destination(self._target, one)
            self.tally.series.add(to.series.name)
        to.note(one)
        return wire.run_id(to.series.name, one.slot)

    def _there(self, runs: Sequence[uuid.UUID], batch: Sequence[Measured]) -> dict[uuid.UUID, bool]:
        """Those of *runs* that have been reported before, and whether it was by this import."""
        slots = [one.slot for one in batch]
        between = {"slot__gte": min(slots), "slot__lte": max(slots)}
        reported = Run.objects.filter(pk__in=runs, state__in=REPORTED, **between)
        known = list(reported.order_by().values_list("pk", flat=True))
        raw = RawReport.objects.filter(run__in=known, received_at__gte=self._began_at, **between)
        just_now = set(raw.order_by().values_list("run_id", flat=True)) if known else set()
        return {run: run in just_now for run in known}

    def _refuse_repeated(self, one: Measured) -> None:
        expected = "a time that no other run of its series in this file has"
        self.refuse(Malformed(one.where, "time", expected, one.slot.isoformat()))

    def _write(self, new: Mapping[uuid.UUID, Measured]) -> None:
        receipts = ingest_all([self._body(*one) for one in new.items()], trigger=self._trigger)
        for one, receipt in zip(new.values(), receipts, strict=True):
            if receipt.duplicate:  # somebody else brought it just now
                self.tally.known += 1
            elif receipt.accepted:
                self.tally.new += 1
            else:
                self.refuse(Malformed(one.where, "run", "a run that the depot can hold", receipt.error))

    def _body(self, run: uuid.UUID, one: Measured) -> bytes:
        to = self._destinations[one.series]
        return written(report_of(one, run, to, self._target.probe, f"{one.where} of {self._file}"))


def report_of(one: Measured, run: uuid.UUID, to: Destination, probe: str, origin: str) -> wire.Report:
    """*one* as a reporter would have sent it when it had ended."""
    return wire.Report(
        run=run,
        series=to.series.name,
        slot=one.slot,
        reporter=REPORTER,
        probe=wire.ProbeIdentity(probe, "", ""),
        parameters=one.parameters,
        started_at=one.slot,
        seconds=one.seconds,
        outcome=one.outcome,
        reason=one.reason,
        stages=one.stages,
        metrics=[wire.MetricValue(metric.name, metric.value, metric.unit) for metric in one.metrics],
        failure=None,
        log=[wire.LogLine("info", 0.0, f"imported: {origin}")],
        environment=wire.Environment("", "", ""),
        clock=wire.Clock(one.slot + timedelta(seconds=one.seconds), synchronised=False),
        bindings=to.bindings,
        usage={},
    )


def written(report: wire.Report) -> bytes:
    """As ``wire.to_json`` writes it, ten times as fast: nothing is cut, what the depot cannot hold it
    refuses."""
    said = {name: value for name, value in vars(report).items() if name != "extra"}
    return msgspec.json.encode(said, order="sorted")


@dataclass
class Preview:
    """What would be made of a series; units by metric, runs by outcome."""

    first: datetime
    last: datetime
    units: dict[str, str] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, one: Measured) -> None:
        self.first, self.last = min(self.first, one.slot), max(self.last, one.slot)
        self.outcomes[one.outcome] += 1
        self.units.update({f"stage.{stage.name}.seconds": "seconds" for stage in one.stages})
        self.units.update({metric.name: metric.unit for metric in one.metrics})


def preview(
    importer: Importer, stream: BinaryIO, target: Target, listener: Listener
) -> tuple[dict[str, Preview], Tally]:
    """What would be made of *stream*, by series; nothing is. All runs count as new.

    Raises:
        Unreadable, NotImported: as ``import_history``.
    """
    tally, found = Tally(), dict[str, Preview]()
    for item in importer.read(stream):
        if isinstance(item, Measured):
            name = target.name_of(item)
            found.setdefault(name, Preview(item.slot, item.slot)).add(item)
            tally.new += 1
        elif isinstance(item, LeftOut):
            tally.left_out[item.why] += 1
        else:
            tally.malformed += 1
            listener.malformed(item)
    tally.series |= found.keys()
    return found, tally
