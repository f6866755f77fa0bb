"""Ingest reports that arrive over HTTP: in groups, for a bounded number of senders, by permission."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.db import InterfaceError, OperationalError

from monitor.ingest.group_commit import GroupCommit
from monitor.ingest.service import Receipt, ingest_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from monitor.models.series import SeriesQuerySet


MOST_REPORTS = 500  # in a transaction that several requests share


class IngestBusy(Exception):
    """This host is storing reports of the maximum number of senders. Nothing was stored; retry soon."""


class SentReports(NamedTuple):
    """The reports of one request. Its sender may report the *visible* series only (None: all series)."""

    bodies: Sequence[bytes]
    visible: SeriesQuerySet | None


def ingest_requests(requests: Sequence[SentReports]) -> list[list[Receipt] | Exception]:
    """Store the reports of several requests; return for each its receipts or its error.

    Requests whose senders may report all series share a transaction; every other request has its own. If the
    shared transaction fails because of one request, each request is stored by itself. If the depot or the
    host is the cause, all fail.
    """
    unrestricted = [number for number, request in enumerate(requests) if request.visible is None]
    groups = [[number] for number, request in enumerate(requests) if request.visible is not None]
    groups += [unrestricted] if unrestricted else []
    results: dict[int, list[Receipt] | Exception] = {}
    while groups:
        group = groups.pop()
        try:
            with _ingest_place():
                bodies = [body for number in group for body in requests[number].bodies]
                receipts = iter(ingest_all(bodies, requests[group[0]].visible))
        except Exception as error:  # noqa: BLE001  # the callers of the group raise it
            if len(group) == 1 or isinstance(error, (IngestBusy, OperationalError, InterfaceError)):
                results |= dict.fromkeys(group, error)
            else:
                groups += [[number] for number in reversed(group)]
        else:
            results |= {number: list(islice(receipts, len(requests[number].bodies))) for number in group}
    return [results[number] for number in range(len(requests))]


@contextmanager
def _ingest_place() -> Iterator[None]:
    """Hold one of the host's places for storing reports; a process that dies releases its place.

    The locks are files of the host: a lock in the depot would add a tenth to the time of a single report.

    Raises:
        IngestBusy: all places are taken.
    """
    for file in places():
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
    raise IngestBusy(f"reports of {settings.GRIDCAST_RECEIVE_AT_ONCE} senders are being stored")


def places() -> list[Path]:
    """Return a lock file for each sender whose reports may be stored at the same time on this host."""
    directory = settings.VAR_DIR / "run"
    directory.mkdir(parents=True, exist_ok=True)
    return [directory / f"receive-{number}" for number in range(settings.GRIDCAST_RECEIVE_AT_ONCE)]


sender_commit = GroupCommit(
    ingest_requests,
    most=MOST_REPORTS,
    weight=lambda request: len(request.bodies),
    max_queued=lambda: settings.GRIDCAST_RECEIVE_WAITING,
)
