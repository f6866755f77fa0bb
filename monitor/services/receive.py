"""Take reports that somebody sends: of series that he sees, and of only so many senders at once."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import deque
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import InterfaceError, OperationalError

from monitor.services.ingest import Receipt, ingest_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from monitor.models.series import SeriesQuerySet


GATHER_SECONDS = 0.005
MOST_TOGETHER = 500  # reports of several requests in one transaction


class Busy(Exception):
    """As many as may be are at work already; nothing was stored, and the same may be sent again soon."""


class _Order:
    """What one request has to store, and what became of it: receipts, or an error."""

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self.bodies = bodies
        self.receipts: list[Receipt] | None = None
        self.error: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.receipts is not None or self.error is not None

    def result(self) -> list[Receipt]:
        if self.receipts is None:
            raise self.error or Busy("it was not stored")
        return self.receipts


_coming = threading.Lock()  # held for a moment, around what waits
_storing = threading.Lock()  # held by the one thread of this process that stores
_waiting: deque[_Order] = deque()


def receive(bodies: Sequence[bytes], visible: SeriesQuerySet | None = None) -> list[Receipt]:
    """Store reports together, of the *visible* series alone; a receipt for each, in their order.

    Those that come to this process while it stores others wait, and are then stored together: what a
    transaction costs is paid once for all of them.

    Raises:
        Busy: too many wait, or too many on this host are at it.
        DatabaseError: the depot is away; nothing was stored that has no receipt.
    """
    if visible is not None:  # his alone: each sees something else
        with _storing, _place():
            return ingest_all(bodies, visible)
    order = _Order(bodies)
    _wait(order)
    with _storing:
        if not order.is_done:
            _gather()
        while not order.is_done and (taken := _taken()):  # many may have come before
            _store(taken)
    return order.result()


def _wait(order: _Order) -> None:
    with _coming:
        if len(_waiting) >= settings.GRIDCAST_RECEIVE_WAITING:
            raise Busy(f"{len(_waiting)} requests wait already")
        _waiting.append(order)


def _gather() -> None:
    """Wait a moment for others, where some came while the last were stored: together they cost little."""
    if len(_waiting) > 1:
        time.sleep(GATHER_SECONDS)


def _taken() -> list[_Order]:
    """Those that wait, the first of them first: as many as make a transaction of a fair size."""
    taken: list[_Order] = []
    with _coming:
        while _waiting and sum(len(one.bodies) for one in taken) < MOST_TOGETHER:
            taken.append(_waiting.popleft())
    return taken


def _store(orders: Sequence[_Order]) -> None:
    """Store what *orders* have, and tell each. Where the depot or the host cannot, nothing is stored;
    anything else is the fault of one, who shall not keep the others from being stored."""
    try:
        with _place():
            receipts = iter(ingest_all([body for one in orders for body in one.bodies]))
        for one in orders:
            one.receipts = list(islice(receipts, len(one.bodies)))
    except Exception as error:  # noqa: BLE001  # each who waits raises it in his own thread
        if len(orders) == 1 or isinstance(error, (Busy, OperationalError, InterfaceError)):
            for one in orders:
                one.error = error
        else:
            for one in orders:
                _store([one])


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
    raise Busy(f"{settings.GRIDCAST_RECEIVE_AT_ONCE} senders' reports are being stored")


def places() -> list[Path]:
    """A file for each of as many as may be at work on this host at once."""
    directory = settings.VAR_DIR / "run"
    directory.mkdir(parents=True, exist_ok=True)
    return [directory / f"receive-{number}" for number in range(settings.GRIDCAST_RECEIVE_AT_ONCE)]
