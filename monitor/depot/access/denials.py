"""Denied attempts, aggregated: a flood of requests costs a few rows a minute, from any number of callers.

The first denial of a kind is written at once. Its repetitions are counted in the process, and written as one
event every ten minutes. Beyond the limits below all further denials are of one kind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from ipaddress import IPv6Address

from monitor.core.networks import ip_of, ipv6_network
from monitor.depot.access import audit
from monitor.depot.access.audit import Action, Actor
from monitor.models import AuditEvent

REPEATS_EVERY = timedelta(minutes=10)
MINUTE = timedelta(minutes=1)
MOST_NEW = 30  # new kinds in a minute
MOST_KINDS = 200
ANY = "any"  # the action of the denials beyond these limits

Write = Callable[..., AuditEvent | None]
Kind = tuple[Actor, Action]


@dataclass
class _Count:
    """The denials of a kind since the last event of it was written, at *written_at*."""

    written_at: datetime
    repeats: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None


class Denials:
    """Counts the denials of one process. Several threads may use it."""

    def __init__(self, write: Write = audit.write) -> None:
        self._write = write
        self._counts: dict[Kind, _Count] = {}
        self._lock = threading.Lock()
        self._minute: datetime | None = None
        self._new_in_minute = 0
        self._flush_at: datetime | None = None

    def add(self, actor: Actor, action: Action, now: datetime) -> None:
        """Count a denial at *now*."""
        kind = (replace(actor, address=network_of(actor.address)), replace(action, target=""))
        with self._lock:
            if kind not in self._counts and self._is_full(now):
                actor, action = Actor(), replace(action, action=ANY, target="")
                kind = (actor, action)
            if kind not in self._counts:
                self._counts[kind] = _Count(now)
                self._write(actor, action, now)
                return
            count = self._counts[kind]
            count.repeats += 1
            count.first_at, count.last_at = count.first_at or now, now
            self._write_due(kind, count, now)

    def flush(self, now: datetime, *, is_forced: bool = False) -> None:
        """Write the repetitions that are due, and forget kinds without any; each request may call it."""
        if not is_forced and self._flush_at is not None and now < self._flush_at:
            return
        with self._lock:
            self._flush_at = now + MINUTE
            for kind, count in list(self._counts.items()):
                if count.repeats:
                    self._write_due(kind, count, now, is_forced=is_forced)
                elif now - count.written_at >= REPEATS_EVERY:
                    del self._counts[kind]

    def _write_due(self, kind: Kind, count: _Count, now: datetime, *, is_forced: bool = False) -> None:
        if is_forced or now - count.written_at >= REPEATS_EVERY:
            self._write(*kind, count.last_at, at=count.first_at, repeats=count.repeats)
            self._counts[kind] = _Count(now)

    def _is_full(self, now: datetime) -> bool:
        if self._minute is None or now - self._minute >= MINUTE:
            self._minute, self._new_in_minute = now, 0
        self._new_in_minute += 1
        return self._new_in_minute > MOST_NEW or len(self._counts) >= MOST_KINDS


def network_of(address: str) -> str:
    """Return the network whose senders count as one: of IPv6 the /64 that a single host usually has."""
    parsed = ip_of(address)
    if isinstance(parsed, IPv6Address):
        return str(ipv6_network(parsed).network_address)
    return str(parsed or "")
