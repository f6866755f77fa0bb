"""Compute when packets arrive, from queues and delays; the functions read no clock.

A packet waits for its site's uplink, then for its link, then travels for the delay. Uplink and link each have
a queue that drops the packets for which it has no room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from monitor.testbed.wan.links import LinkProperties, LinkTable


class Bottleneck:
    """A rate limit of *bytes_per_second* (0: no limit) behind a queue of *queue_bytes*."""

    __slots__ = ("bytes_per_second", "free_at", "queue_bytes")

    def __init__(self, bytes_per_second: float, queue_bytes: int) -> None:
        self.bytes_per_second = bytes_per_second
        self.queue_bytes = queue_bytes
        self.free_at = 0.0

    def passed_at(self, size_bytes: int, arrives_at: float) -> float | None:
        """Return when a packet that arrives at *arrives_at* has passed; None if the queue is full."""
        if not self.bytes_per_second:
            return arrives_at
        begins = max(self.free_at, arrives_at)
        if (begins - arrives_at) * self.bytes_per_second > self.queue_bytes:
            return None
        self.free_at = begins + size_bytes / self.bytes_per_second
        return self.free_at


@dataclass
class Counters:
    """Counts of the packets of one direction."""

    packets: int = 0
    bytes: int = 0
    lost: int = 0  # by random loss
    dropped: int = 0  # by full queues


class _Direction:
    __slots__ = ("bottleneck", "counters", "last_at", "link", "uplink")

    def __init__(
        self, link: LinkProperties, uplink: Bottleneck, queue_bytes: int, counters: Counters
    ) -> None:
        self.link = link
        self.uplink = uplink
        self.bottleneck = Bottleneck(link.bytes_per_second, queue_bytes)
        self.counters = counters
        self.last_at = 0.0


class Network:
    """The state of all queues. *chance* returns a random number in [0, 1) for each loss and each jitter."""

    def __init__(self, table: LinkTable, chance: Callable[[], float]) -> None:
        self.chance = chance
        self.counters = {pair: Counters() for pair in table.links}
        self.change(table)

    def change(self, table: LinkTable) -> None:
        """Apply *table* with empty queues: new packets do not wait behind packets sent earlier."""
        self.table = table
        queue_bytes = table.queue_bytes
        uplinks = {site: Bottleneck(rate, queue_bytes) for site, rate in table.uplinks.items()}
        self._directions = {
            pair: _Direction(link, uplinks[pair[0]], queue_bytes, self.counters[pair])
            for pair, link in table.links.items()
        }

    def arrival(self, source: str, target: str, size_bytes: int, now: float) -> float | None:
        """Return when a packet sent by *source* at *now* reaches *target*; None if it is lost or dropped."""
        direction = self._directions[source, target]
        link, counters = direction.link, direction.counters
        counters.packets += 1
        counters.bytes += size_bytes
        if link.loss and self.chance() < link.loss:
            counters.lost += 1
            return None
        passed_at = direction.uplink.passed_at(size_bytes, now)
        if passed_at is not None:
            passed_at = direction.bottleneck.passed_at(size_bytes, passed_at)
        if passed_at is None:
            counters.dropped += 1
            return None
        at = passed_at + link.delay_seconds
        if link.jitter_seconds:
            at += link.jitter_seconds * (2 * self.chance() - 1)
        direction.last_at = max(at, now, direction.last_at)
        return direction.last_at
