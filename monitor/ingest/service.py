"""Take reports into the depot: idempotent, all or nothing, answered after commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import DataError, IntegrityError, transaction
from django.utils import timezone
from psycopg.errors import CheckViolation, ForeignKeyViolation

from monitor.db import partitions
from monitor.ingest import match_runs
from monitor.ingest.disk_guard import refuse_without_room, told_when_full
from monitor.ingest.fast_parser import ParsedReport, read
from monitor.ingest.match_runs import Gone, Incoming
from monitor.ingest.write import store
from reporters import report as wire

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from monitor.models.series import SeriesQuerySet

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
AHEAD = timedelta(days=1)  # a slot cannot be later than its run, nor either that much later than now


@dataclass(frozen=True)
class Receipt:
    """What became of a report. With a receipt that is *accepted*, its sender may forget it."""

    run: uuid.UUID | None
    accepted: bool
    duplicate: bool = False
    error: str = ""


def ingest(body: bytes) -> Receipt:
    """Store one report; see ``ingest_all``."""
    return ingest_all([body])[0]


def ingest_all(
    bodies: Sequence[bytes], visible: SeriesQuerySet | None = None, *, trigger: str = "reporter"
) -> list[Receipt]:
    """Store reports together; a receipt for each, in their order. Delivering one twice stores it once.

    One that cannot be stored is refused, and says why; the others are stored all the same. With *visible*,
    there are no other series than these. *trigger* is that of runs which nobody expected.

    Raises:
        DepotFull: the depot is full; nothing was stored, send them again later.
        DatabaseError: the depot is away; nothing was stored that has no receipt, send them again.
    """
    refuse_without_room()
    now = timezone.now()
    told = [_read(body, now) for body in bodies]
    with told_when_full():
        try:
            return _taken(told, bodies, visible, trigger)
        except Gone:
            pass
        except IntegrityError as error:
            if not isinstance(error.__cause__, ForeignKeyViolation):  # so says a row whose series is gone
                raise
        return _taken(told, bodies, visible, trigger)


def _taken(
    told: Sequence[ParsedReport | Receipt],
    bodies: Sequence[bytes],
    visible: SeriesQuerySet | None,
    trigger: str,
) -> list[Receipt]:
    """A receipt for each of what *bodies* told, once those of series that are there have been stored."""
    places = match_runs.look((one for one in told if isinstance(one, ParsedReport)), visible)
    known = {
        number: Incoming(places[one.run], one, bodies[number], trigger)
        for number, one in enumerate(told)
        if isinstance(one, ParsedReport) and one.run in places
    }
    receipts = dict(zip(known, _stored(list(known.values())), strict=True))
    return [receipts.get(number) or _refused(one) for number, one in enumerate(told)]


def _read(body: bytes, now: datetime) -> ParsedReport | Receipt:
    try:
        report = read(body)
    except wire.ReportError as error:
        return Receipt(run=None, accepted=False, error=str(error))
    wrong = _wrong_time(report, now)
    return Receipt(report.run, accepted=False, error=wrong) if wrong else report


def _wrong_time(report: ParsedReport, now: datetime) -> str:
    """What is wrong with when it was; empty where nothing is. A clock that is wrong must not fill the depot
    with parts for every year that it comes to, nor with values that nobody will have known for years."""
    latest = now + AHEAD
    for name, time in (("slot", report.slot), ("started_at", report.started_at)):
        if not EARLIEST <= time <= latest:
            clock = (
                "is before 1970" if time < EARLIEST else f"is more than a day after now, {wire.rfc3339(now)}"
            )
            return f"{name}: {wire.rfc3339(time)} {clock}: set the clock of the reporter, and send it anew"
    if report.seconds > (latest - report.started_at).total_seconds():
        began = wire.rfc3339(report.started_at)
        return f"seconds: what began at {began} and took {report.seconds:g} s has not ended yet"
    return ""


def _refused(one: ParsedReport | Receipt) -> Receipt:
    if isinstance(one, Receipt):
        return one
    return Receipt(one.run, accepted=False, error=f"there is no series {one.series!r}")


def _stored(incoming: Sequence[Incoming]) -> list[Receipt]:
    """Store all together or, if the depot cannot hold one of them, each half by itself."""
    if not incoming:
        return []
    try:
        new = _in_its_room(incoming)
    except (DataError, OverflowError) as error:
        if len(incoming) > 1:
            half = len(incoming) // 2
            return [*_stored(incoming[:half]), *_stored(incoming[half:])]
        return [Receipt(incoming[0].report.run, accepted=False, error=f"the depot cannot hold it: {error}")]
    return [
        Receipt(one.report.run, accepted=True, duplicate=not is_new)
        for one, is_new in zip(incoming, new, strict=True)
    ]


def _in_its_room(incoming: Sequence[Incoming]) -> list[bool]:
    """Store all together; whether each was new. There mostly is room for their time, so that it is made when
    it turns out that there is none."""
    try:
        with transaction.atomic():
            return store(incoming)
    except IntegrityError as error:
        if not isinstance(error.__cause__, CheckViolation):  # so says a row that no part takes
            raise
    with transaction.atomic():
        partitions.create_for({one.report.slot for one in incoming})
        return store(incoming)
