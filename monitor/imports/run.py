"""Import what others measured: their runs become runs of series here, as if they had been reported in
time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

from django.db import DataError, transaction
from django.utils import timezone

from monitor.db import analyze
from monitor.imports.as_report import measured, report_of, written
from monitor.imports.formats.base import Importer, Item, LeftOut, Malformed, Measured, Unreadable
from monitor.imports.targets import Destination, NotImported, Target, destination, settle
from monitor.ingest.service import AHEAD, ingest_all
from monitor.models import RawReport, Run
from monitor.models.run import REPORTED
from reporters import report as wire

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

    from monitor.ingest.service import Receipt

BATCH = 1000
PLANNED_FROM = 1000  # new runs: the planner is told of so many at once, and not only when its day has come
_TRIGGER_CHARACTERS = 900


@dataclass
class Tally:
    """What has come of an import so far; *left_out* by why. *differing* are those of the *known* that are
    not as they are here: what is here stays."""

    new: int = 0
    known: int = 0
    differing: int = 0
    malformed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    series: set[str] = field(default_factory=set)

    @property
    def runs(self) -> int:
        return self.new + self.known


@dataclass(frozen=True)
class Listener:
    """Who is told of what is refused, when it is met, and of the tally, after every batch."""

    malformed: Callable[[Malformed], None]
    progress: Callable[[Tally], None]


class Stopped(Exception):
    """Something was refused, and that was to be the end; what came before it is stored, and nothing else."""


class _Refused(Exception):
    """The depot refused the run of this *number*."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(number, why)
        self.number, self.why = number, why


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
        Unreadable, NotImported: it cannot go on; Stopped: with *strict*, at the first that is refused, which
            the listener is not told of. What came before is stored.
        DepotFull: the depot is full; DatabaseError: it is away. Batches before are stored.
    """
    importing = _Import(target, file, listener, strict=strict)
    try:
        _take_all(importing, importer.read(stream))
    except (Unreadable, NotImported, Stopped):
        importing.end()
        raise
    importing.end()
    return importing.tally


def _take_all(importing: _Import, items: Iterable[Item]) -> None:
    try:
        for item in items:
            importing.take(item)
    except Unreadable:
        importing.store()
        raise
    importing.store()


class _Import:
    """One import under way."""

    def __init__(self, target: Target, file: str, listener: Listener, *, strict: bool) -> None:
        self.tally = Tally()
        self._target, self._file, self._listener, self._strict = target, file, listener, strict
        self._trigger = f"import: {target.kind} {file}"[:_TRIGGER_CHARACTERS]
        self._began_at = timezone.now()
        self._destinations: dict[str, Destination] = {}
        self._batch: list[Measured] = []

    def take(self, item: Item) -> None:
        if isinstance(item, Measured):
            self._batch.append(item)
            if len(self._batch) == BATCH:
                self.store()
        elif isinstance(item, LeftOut):
            self.tally.left_out[item.why] += 1
        else:
            if self._strict:
                self.store()  # something before it may be refused as well: then that is the first
            self._refuse(item)

    def store(self) -> None:
        """Store what has been taken and is not there yet, up to what ends the import."""
        batch, self._batch = self._batch, []
        new: dict[uuid.UUID, Measured] = {}
        try:
            self._choose(batch, new)
        except (NotImported, Stopped):
            self._write(list(new.items()))
            raise
        self._write(list(new.items()))

    def end(self) -> None:
        for one in self._destinations.values():
            settle(one)
        if self.tally.new >= PLANNED_FROM:
            for table in analyze.outdated(timezone.now()):
                analyze.analyse(table)

    def _refuse(self, malformed: Malformed) -> None:
        if self._strict:
            raise Stopped(str(malformed))
        self.tally.malformed += 1
        self._listener.malformed(malformed)

    def _choose(self, batch: Sequence[Measured], new: dict[uuid.UUID, Measured]) -> None:
        """Put those of *batch* into *new* that are; what ends the import raises, once those before it are
        there."""
        runs = [wire.run_id(self._target.name_of(one), one.slot) for one in batch]
        there = _there(runs, batch)
        for run, one in zip(runs, batch, strict=True):
            impossible = wrong(self._target, one)
            if impossible is not None:
                self._refuse(impossible)
                continue
            try:
                self._destination(one).note(one)
            except DataError as error:  # of a series with such parameters, say
                self._refuse(_unheld(one, str(error).partition("\n")[0]))
                continue
            if run in new:
                self._meet_again(one, is_same=replace(one, where=new[run].where) == new[run])
            elif run in there:
                self._meet_known(one, run, there[run])
            else:
                new[run] = one

    def _destination(self, one: Measured) -> Destination:
        to = self._destinations.get(one.series)
        if to is None:
            try:
                to = destination(self._target, one)
            except NotImported as error:
                raise NotImported(f"{one.where}: {error}") from None
            self._destinations[one.series] = to
            self.tally.series.add(to.series.name)
        return to

    def _meet_known(self, one: Measured, run: uuid.UUID, raw: RawReport | None) -> None:
        """It is there, as *raw* says; a run whose raw report is gone is taken for the same."""
        if raw is None or measured(raw.body) == measured(self._body(run, one)):
            self.tally.known += 1
        elif raw.received_at >= self._began_at and self._is_of_this_file(raw):
            self._meet_again(one, is_same=False)
        else:
            self.tally.known += 1
            self.tally.differing += 1

    def _meet_again(self, one: Measured, *, is_same: bool) -> None:
        """Its file had a run of that time before."""
        if is_same:
            self.tally.known += 1
        else:
            expected = "a time that no other run of its series in this file has"
            self._refuse(Malformed(one.where, "time", expected, one.slot.isoformat()))

    def _is_of_this_file(self, raw: RawReport) -> bool:
        return any(line.text.endswith(f" of {self._file}") for line in raw.parsed().log)

    def _write(self, new: Sequence[tuple[uuid.UUID, Measured]]) -> None:
        try:
            receipts = self._ingested(new)
        except _Refused as refused:
            self._write(new[: refused.number])
            _, one = new[refused.number]
            raise Stopped(str(_unheld(one, refused.why))) from None
        for (_, one), receipt in zip(new, receipts, strict=True):
            if receipt.duplicate:  # somebody else brought it just now
                self.tally.known += 1
            elif receipt.accepted:
                self.tally.new += 1
            else:
                self._refuse(_unheld(one, receipt.error))
        self._listener.progress(self.tally)

    def _ingested(self, new: Sequence[tuple[uuid.UUID, Measured]]) -> list[Receipt]:
        """Raises _Refused: one was, everything is to come before it, and nothing of *new* is stored."""
        if not new:
            return []
        with transaction.atomic() if self._strict else nullcontext():
            receipts = ingest_all([self._body(*one) for one in new], trigger=self._trigger)
            refused = [number for number, one in enumerate(receipts) if not one.accepted]
            if refused and self._strict:
                raise _Refused(refused[0], receipts[refused[0]].error)
        return receipts

    def _body(self, run: uuid.UUID, one: Measured) -> bytes:
        to = self._destinations[one.series]
        return written(report_of(one, run, to, self._target.probe, f"{one.where} of {self._file}"))


def wrong(target: Target, one: Measured) -> Malformed | None:
    """Why it can be no run, whatever there is already; None where it can."""
    latest = timezone.now() + AHEAD
    if one.slot > latest or one.seconds > (latest - one.slot).total_seconds():
        said = f"{wire.rfc3339(one.slot)}, and {one.seconds:g} s"
        return Malformed(one.where, "time", "a run that has ended by now", said)
    return target.wrong_name(one)


def _there(runs: Sequence[uuid.UUID], batch: Sequence[Measured]) -> dict[uuid.UUID, RawReport | None]:
    """Those of *runs* that have been reported before, with what was, where that is kept."""
    if not batch:
        return {}
    slots = [one.slot for one in batch]
    between = {"slot__gte": min(slots), "slot__lte": max(slots)}
    known = Run.objects.filter(pk__in=runs, state__in=REPORTED, **between).order_by()
    there: dict[uuid.UUID, RawReport | None] = dict.fromkeys(known.values_list("pk", flat=True))
    if there:
        raw = RawReport.objects.filter(run__in=list(there), **between).order_by()
        there.update({one.run_id: one for one in raw})
    return there


def _unheld(one: Measured, why: str) -> Malformed:
    return Malformed(one.where, "run", "a run that the depot can hold", why)
