"""Take reports into the depot: idempotent, all or nothing, answered after commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import DataError, transaction

from monitor.models import Run, Series
from monitor.services.store import Incoming, store
from reporters import report as wire

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Sequence

    from monitor.models.series import SeriesQuerySet


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


def ingest_all(bodies: Sequence[bytes], visible: SeriesQuerySet | None = None) -> list[Receipt]:
    """Store reports together; a receipt for each, in their order. Delivering one twice stores it once.

    One that cannot be stored is refused, and says why; the others are stored all the same. With *visible*,
    there are no other series than these.

    Raises:
        DatabaseError: the depot is away; nothing was stored that has no receipt, send them again.
    """
    read = dict(enumerate(map(_read, bodies)))
    reports = {place: one for place, one in read.items() if isinstance(one, wire.Report)}
    series = _among(visible, _series(reports.values()))
    known = {
        place: Incoming(series[report.run], report, bodies[place])
        for place, report in reports.items()
        if report.run in series
    }
    receipts = dict(zip(known, _stored(list(known.values())), strict=True))
    return [receipts.get(place) or _refused(one) for place, one in read.items()]


def _read(body: bytes) -> wire.Report | wire.ReportError:
    try:
        return wire.from_json(body)
    except wire.ReportError as error:
        return error


def _refused(read: wire.Report | wire.ReportError) -> Receipt:
    if isinstance(read, wire.ReportError):
        return Receipt(run=None, accepted=False, error=str(read))
    return Receipt(read.run, accepted=False, error=f"there is no series {read.series!r}")


def _series(reports: Iterable[wire.Report]) -> Mapping[uuid.UUID, int]:
    """By run, the key of the series that it belongs to, where there is one.

    A series may have got another name since its run was put into the ledger.
    """
    names = {report.run: report.series for report in reports}
    found = dict(Run.objects.filter(pk__in=names).values_list("pk", "series_id"))
    strangers = {run: name for run, name in names.items() if run not in found}
    if strangers:
        keys = dict(Series.objects.filter(name__in=strangers.values()).values_list("name", "pk"))
        found.update({run: keys[name] for run, name in strangers.items() if name in keys})
    return found


def _among(visible: SeriesQuerySet | None, series: Mapping[uuid.UUID, int]) -> Mapping[uuid.UUID, int]:
    """Those of *series*, by run, that are *visible*."""
    if visible is None or not series:
        return series
    seen = set(visible.filter(pk__in=set(series.values())).values_list("pk", flat=True))
    return {run: key for run, key in series.items() if key in seen}


def _stored(incoming: Sequence[Incoming]) -> list[Receipt]:
    """Store all together or, if the depot cannot hold one of them, each by itself."""
    if not incoming:
        return []
    try:
        with transaction.atomic():
            new = store(incoming)
    except (DataError, OverflowError) as error:
        if len(incoming) > 1:
            return [receipt for one in incoming for receipt in _stored([one])]
        return [Receipt(incoming[0].report.run, accepted=False, error=f"the depot cannot hold it: {error}")]
    return [
        Receipt(one.report.run, accepted=True, duplicate=not is_new)
        for one, is_new in zip(incoming, new, strict=True)
    ]
