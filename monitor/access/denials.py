"""Denied attempts, aggregated: a flood of requests costs a few rows and writes a minute, whoever sends it.

The first denial of a kind is written at once. Its repetitions within an hour are counted in the process, and
written as one update a minute. Beyond ``MOST_NEW`` new kinds a minute, all further denials are one kind.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import Error

from monitor.access import audit
from monitor.access.audit import Action, Actor
from monitor.models import AuditEvent

WRITE_EVERY = timedelta(minutes=1)  # the repetitions of a kind
SAME_EVENT = timedelta(hours=1)
MOST_NEW = 30  # new kinds in a minute
MOST_KINDS = 1_000
OTHERS = "any"  # the action of the denials beyond these limits

Write = Callable[[Actor, Action, datetime], AuditEvent | None]


@dataclass
class _Kind:
    """Denials that differ in time only: *unwritten* of them are not yet in the row *event*."""

    event: int
    began_at: datetime
    written_at: datetime
    last_at: datetime
    unwritten: int = 0


class Denials:
    """Counts the denials of one process. Several threads may use it."""

    def __init__(self, write: Write = audit.write) -> None:
        self._write = write
        self._kinds: dict[tuple[Actor, Action], _Kind] = {}
        self._lock = threading.Lock()
        self._minute: datetime | None = None
        self._new_in_minute = 0
        self._flush_at: datetime | None = None

    def add(self, actor: Actor, action: Action, now: datetime) -> None:
        """Count a denial at *now*."""
        key = (replace(actor, address=network_of(actor.address)), replace(action, target=""))
        with self._lock:
            if self._count(key, now):
                return
            if self._is_full(now):
                key = (Actor(), replace(key[1], action=OTHERS))
                actor, action = key
                if self._count(key, now):
                    return
            event = self._write(actor, action, now)
            if event is not None:
                self._kinds[key] = _Kind(event.pk, now, now, now)

    def flush(self, now: datetime, *, is_forced: bool = False) -> None:
        """Write the repetitions that are due, at most once a minute; each request may call it."""
        if self._flush_at is not None and now < self._flush_at and not is_forced:
            return
        with self._lock:
            self._flush_at = now + WRITE_EVERY
            for key, kind in list(self._kinds.items()):
                if is_forced or now - kind.written_at >= WRITE_EVERY:
                    self._write_repeats(kind, now)
                if now - kind.began_at >= SAME_EVENT:
                    del self._kinds[key]

    def _count(self, key: tuple[Actor, Action], now: datetime) -> bool:
        """Count the denial if its kind is known; return False if not."""
        kind = self._kinds.get(key)
        if kind is not None and now - kind.began_at >= SAME_EVENT:
            self._write_repeats(kind, now)
            del self._kinds[key]
            return False
        if kind is None:
            return False
        kind.unwritten += 1
        kind.last_at = now
        if now - kind.written_at >= WRITE_EVERY:
            self._write_repeats(kind, now)
        return True

    def _is_full(self, now: datetime) -> bool:
        if self._minute is None or now - self._minute >= WRITE_EVERY:
            self._minute, self._new_in_minute = now, 0
        self._new_in_minute += 1
        return self._new_in_minute > MOST_NEW or len(self._kinds) >= MOST_KINDS

    @staticmethod
    def _write_repeats(kind: _Kind, now: datetime) -> None:
        if kind.unwritten:
            try:
                AuditEvent.objects.repeat(kind.event, kind.unwritten, kind.last_at)
            except Error:
                audit.logger.exception("%d repeated denials not stored", kind.unwritten)
                return
            kind.unwritten = 0
        kind.written_at = now


def network_of(address: str) -> str:
    """Return the network whose senders count as one: of IPv6 the /64 that a single host usually has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
    return str(parsed)
