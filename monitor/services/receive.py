"""Take reports that somebody sends: of series that he sees, and of only so many senders at once."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.conf import settings

from monitor.services.ingest import Receipt, ingest_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from monitor.models.series import SeriesQuerySet


class Busy(Exception):
    """As many as may be are at work already; nothing was stored, and the same may be sent again soon."""


def receive(bodies: Sequence[bytes], visible: SeriesQuerySet | None = None) -> list[Receipt]:
    """Store reports together, of the *visible* series alone; a receipt for each, in their order.

    Raises:
        Busy: too many on this host are at it.
        DatabaseError: the depot is away; nothing was stored that has no receipt.
    """
    with _place():
        return ingest_all(bodies, visible)


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
