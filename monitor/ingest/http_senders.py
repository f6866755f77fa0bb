"""Take reports that somebody sends: of series that he sees, and of only so many senders at once."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.db import InterfaceError, OperationalError

from monitor.ingest.group_commit import GroupCommit, TooMany
from monitor.ingest.service import Receipt, ingest_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from monitor.models.series import SeriesQuerySet


MOST_TOGETHER = 500  # reports of several requests in one transaction


class IngestBusy(Exception):
    """As many as may be are at work already; nothing was stored, and the same may be sent again soon."""


class _Sent(NamedTuple):
    """What one request has to store: of these *visible* series alone, or of all."""

    bodies: Sequence[bytes]
    visible: SeriesQuerySet | None


def receive(bodies: Sequence[bytes], visible: SeriesQuerySet | None = None) -> list[Receipt]:
    """Store reports together, of the *visible* series alone; a receipt for each, in their order.

    Those that come to this process while it stores others wait, and are then stored together: what a
    transaction costs is paid once for all of them.

    Raises:
        IngestBusy: too many wait, or too many on this host are at it.
        DatabaseError: the depot is away; nothing was stored that has no receipt.
    """
    try:
        receipts = waiting.submit(_Sent(bodies, visible))
    except TooMany as error:
        raise IngestBusy(str(error)) from error
    if isinstance(receipts, Exception):
        raise receipts
    return receipts


def _store(sent: Sequence[_Sent]) -> list[list[Receipt] | Exception]:
    """What became of each: receipts, or an error. Whoever does not see everything is by himself."""
    everybody = [number for number, one in enumerate(sent) if one.visible is None]
    others = [[number] for number, one in enumerate(sent) if one.visible is not None]
    became: dict[int, list[Receipt] | Exception] = {}
    for group in [everybody, *others] if everybody else others:
        became |= zip(group, _stored([sent[number] for number in group]), strict=True)
    return [became[number] for number in range(len(sent))]


def _stored(sent: Sequence[_Sent]) -> list[list[Receipt] | Exception]:
    """Where the depot or the host cannot, nothing is stored; anything else is the fault of one, who shall not
    keep the others from being stored."""
    try:
        with _place():
            receipts = iter(ingest_all([body for one in sent for body in one.bodies], sent[0].visible))
    except Exception as error:  # noqa: BLE001  # each who waits raises it in his own thread
        if len(sent) == 1 or isinstance(error, (IngestBusy, OperationalError, InterfaceError)):
            return [error] * len(sent)
        return [became for one in sent for became in _stored([one])]
    return [list(islice(receipts, len(one.bodies))) for one in sent]


@contextmanager
def _place() -> Iterator[None]:
    """Have one of the places at which reports are stored, if one is free; who dies leaves his.

    A lock of the host, not of the depot: asking the depot costs a single report a tenth of all its time.
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
    raise IngestBusy(f"{settings.GRIDCAST_RECEIVE_AT_ONCE} senders' reports are being stored")


def places() -> list[Path]:
    """A file for each of as many as may be at work on this host at once."""
    directory = settings.VAR_DIR / "run"
    directory.mkdir(parents=True, exist_ok=True)
    return [directory / f"receive-{number}" for number in range(settings.GRIDCAST_RECEIVE_AT_ONCE)]


waiting = GroupCommit(
    _store,
    most=MOST_TOGETHER,
    weight=lambda sent: len(sent.bodies),
    may_wait=lambda: settings.GRIDCAST_RECEIVE_WAITING,
)
