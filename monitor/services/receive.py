"""Take reports that somebody sends: of series that he sees, and only so many senders' at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from monitor.depot.locks import one_of
from monitor.models import Series
from monitor.services.ingest import Receipt, ingest_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

LOCK = 0x72656376 << 16  # "recv": the first of as many as may be at work at once


class Busy(Exception):
    """As many as may be are at work already; nothing was stored, and the same may be sent again soon."""


def receive(bodies: Sequence[bytes], sender: AbstractBaseUser | AnonymousUser) -> list[Receipt]:
    """Store what *sender* may report, together; a receipt for each of *bodies*, in their order.

    Raises:
        Busy: too many are at it, on all hosts together.
        DatabaseError: the depot is away; nothing was stored that has no receipt.
    """
    visible = None if getattr(sender, "is_superuser", False) else Series.objects.visible_to(sender)
    with one_of(locks()) as place:
        if place is None:
            raise Busy(f"{settings.GRIDCAST_RECEIVE_AT_ONCE} are storing reports already")
        return ingest_all(bodies, visible)


def locks() -> range:
    """The locks of which each who stores holds one."""
    return range(LOCK, LOCK + settings.GRIDCAST_RECEIVE_AT_ONCE)
