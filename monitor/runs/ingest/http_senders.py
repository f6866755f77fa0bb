"""Ingest reports that arrive over HTTP: in groups, for a limited number of senders at the same time."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.db import InterfaceError, OperationalError

from monitor.runs.ingest.busy_times import BusyTimes
from monitor.runs.ingest.chains import ingest_parts
from monitor.runs.ingest.counts import counted_commit
from monitor.runs.ingest.group_commit import GroupCommit
from monitor.runs.ingest.receipt import ReportReceipt
from monitor.runs.ingest.service import ingest_all
from reporters.spool.records import parse_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from monitor.models.series import SeriesQuerySet
    from reporters.spool.receipts import Receipt


BUSY_SECONDS = 1  # until a sender of fresh reports should try again
MOST_REPORTS = 500  # in a transaction that several requests share
# How long a transaction waits for requests that are being authenticated: about as long as it takes itself.
GATHER_SECONDS = 0.005


class IngestBusy(Exception):
    """As many senders as allowed are storing reports on this host.

    Nothing was stored; retry after *retry_seconds*.
    """

    def __init__(self, retry_seconds: int = BUSY_SECONDS) -> None:
        self.retry_seconds = retry_seconds
        super().__init__(f"reports of {settings.GRIDCAST_RECEIVE_AT_ONCE} senders are being stored")


class SentReports(NamedTuple):
    """The reports of one request.

    The request's credential is that of *reporter*; it may report only *visible* series (None: all series).
    """

    bodies: Sequence[bytes]
    reporter: str
    visible: SeriesQuerySet | None


def ingest_requests(requests: Sequence[SentReports]) -> list[list[ReportReceipt] | Exception]:
    """Store the reports of several requests; return the receipts or the error of each request.

    Requests whose senders may report all series share a transaction; every other request has its own. If the
    shared transaction fails because of one request, each request is stored in a transaction of its own. If
    the depot or the host is the cause, all requests of the transaction fail.
    """
    unrestricted = [number for number, request in enumerate(requests) if request.visible is None]
    groups = [[number] for number, request in enumerate(requests) if request.visible is not None]
    groups += [unrestricted] if unrestricted else []
    results: dict[int, list[ReportReceipt] | Exception] = {}
    while groups:
        group = groups.pop()
        try:
            with _ingest_place(), counted_commit(len(group)):
                sent = [
                    (body, requests[number].reporter) for number in group for body in requests[number].bodies
                ]
                bodies, senders = [body for body, _ in sent], [sender for _, sender in sent]
                receipts = iter(
                    ingest_all(bodies, requests[group[0]].visible, senders=senders, from_outside=True)
                )
        except Exception as error:  # noqa: BLE001  # the callers of the group raise it
            if len(group) == 1 or isinstance(error, (IngestBusy, OperationalError, InterfaceError)):
                results |= dict.fromkeys(group, error)
            else:
                groups += [[number] for number in reversed(group)]
        else:
            results |= {number: list(islice(receipts, len(requests[number].bodies))) for number in group}
    return [results[number] for number in range(len(requests))]


def ingest_records(reporter: str, body: bytes, *, is_backlog: bool = False) -> Receipt:
    """Store the records of *reporter* in *body*; see ``chains.ingest_parts``, which may raise further errors.

    A backlog leaves half of the host's places to fresh records and reports.

    Raises:
        IngestBusy: nothing was stored.
        MalformedRecords: *body* is malformed; nothing was stored.
    """
    if not is_backlog:
        with _ingest_place():  # before parsing: a refusal has to be cheap
            return ingest_parts(reporter, parse_parts(body))
    backlog_places = places()[: max(1, settings.GRIDCAST_RECEIVE_AT_ONCE // 2)]
    try:
        with _ingest_place(backlog_places), _backlogs.storing(reporter):
            return ingest_parts(reporter, parse_parts(body))
    except IngestBusy:
        raise IngestBusy(_backlogs.retry_seconds(reporter, len(backlog_places))) from None


@contextmanager
def _ingest_place(among: Sequence[Path] = ()) -> Iterator[None]:
    """Hold one of the host's places for storing reports, or one *among* these.

    A process that dies releases its place.

    A place is a locked file of the host: a lock in the depot would make storing one report a tenth slower.

    Raises:
        IngestBusy: all places are taken.
    """
    for file in among or reversed(places()):
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        try:
            yield
        finally:
            os.close(descriptor)
        return
    raise IngestBusy


def places() -> list[Path]:
    """Return the lock files of this host's places; each place lets one sender store reports at a time."""
    directory = settings.VAR_DIR / "run"
    directory.mkdir(parents=True, exist_ok=True)
    return [directory / f"receive-{number}" for number in range(settings.GRIDCAST_RECEIVE_AT_ONCE)]


_backlogs = BusyTimes()
sender_commit = GroupCommit(
    ingest_requests,
    most=MOST_REPORTS,
    weight=lambda request: len(request.bodies),
    max_queued=lambda: settings.GRIDCAST_RECEIVE_WAITING,
    gather_seconds=GATHER_SECONDS,
)
