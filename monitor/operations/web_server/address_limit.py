"""How many connections one address may have in a web process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Any

from monitor.core.networks import ip_of, ipv6_network
from monitor.operations.web_server.proxies import Proxies

LOG_SECONDS = 60.0


def client_of(host: str) -> str:
    """Return what is counted as one client: an IPv4 address, or the network that a provider gives to one."""
    address = ip_of(host)
    return str(ipv6_network(address)) if isinstance(address, IPv6Address) else str(address or host)


class AddressLimit:
    """Counts the connections of each client; those of *proxies* are never too many."""

    def __init__(
        self, most: int, proxies: Proxies, log: Any, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.most, self._proxies, self._log, self._clock = most, proxies, log, clock
        self._connections: Counter[str] = Counter()
        self._refused = 0  # since the last line of the log
        self._log_at = -LOG_SECONDS

    def add(self, host: str) -> int:
        """Count a connection of *host*; return by how many its client exceeds the limit, 0 if it does not."""
        client = client_of(host)
        self._connections[client] += 1
        return 0 if self._proxies.includes(host) else max(self._connections[client] - self.most, 0)

    def remove(self, host: str) -> None:
        client = client_of(host)
        self._connections[client] -= 1
        if not self._connections[client]:
            del self._connections[client]

    def log_refused(self, host: str) -> None:
        """Log that a connection of *host* was refused, with those before it, at most once a minute."""
        self._refused += 1
        now = self._clock()
        if now - self._log_at >= LOG_SECONDS:
            self._log.warning(
                "%d connections refused, the last of %s: an address may have %d in a web process"
                " (GRIDCAST_CONNECTIONS_PER_ADDRESS), unless GRIDCAST_PROXIES has it",
                self._refused,
                host or "a Unix socket",
                self.most,
            )
            self._log_at, self._refused = now, 0
