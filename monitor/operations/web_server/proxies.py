"""The proxies that stand before the web server, and the client that they name in ``X-Forwarded-For``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from monitor.core import env
from monitor.core.networks import ip_of, is_within

UNIX = "unix"  # the entry for proxies that connect to a Unix socket
VARIABLE = "GRIDCAST_PROXIES"
MOST_HOPS = 20  # entries of X-Forwarded-For that are read, from the right
# An address, an address and its port, or the same in brackets; no name, no zone, no word.
_ENTRY = re.compile(
    r"\[(?P<bracketed>[0-9A-Fa-f:.]{2,45})\](?::\d{1,5})?"
    r"|(?P<with_port>\d{1,3}(?:\.\d{1,3}){3}):\d{1,5}"
    r"|(?P<plain>[0-9A-Fa-f:.]{2,45})",
    re.ASCII,
)


@dataclass(frozen=True)
class Proxies:
    """Our own proxies: those of *networks*, and with *is_unix* each that connects to a Unix socket."""

    networks: tuple[IPv4Network | IPv6Network, ...]
    is_unix: bool

    def __str__(self) -> str:
        """Return the value of the variable that names them."""
        hosts = (
            str(each.network_address) if each.prefixlen == each.max_prefixlen else str(each)
            for each in self.networks
        )
        return ",".join([*hosts, *([UNIX] if self.is_unix else [])])

    def includes(self, peer: str) -> bool:
        """Return whether the *peer* of a connection is one of them; "" is that of a Unix socket."""
        return is_within(peer, self.networks) if peer else self.is_unix

    def with_peer(self, peer: str) -> Proxies:
        """Return these proxies and *peer*."""
        address = ip_of(peer)
        if address is None:
            return Proxies(self.networks, is_unix=True)
        return Proxies((*self.networks, ip_network(address)), self.is_unix)

    def without(self, others: Proxies) -> Proxies:
        """Return those of these proxies that *others* does not include."""
        networks = tuple(each for each in self.networks if not others.covers(each))
        return Proxies(networks, self.is_unix and not others.is_unix)

    def covers(self, network: IPv4Network | IPv6Network) -> bool:
        """Return whether every address of *network* is one of these proxies, by a single entry."""
        return any(
            each.version == network.version and network.subnet_of(each)  # type: ignore[arg-type]  # of one version
            for each in self.networks
        )

    def client_of(self, peer: str, forwarded_for: str) -> str:
        """Return the client of a request: the rightmost address that is none of these proxies.

        Args:
            peer: the address at the other end of the connection; "" at a Unix socket.
            forwarded_for: the value of ``X-Forwarded-For``: each proxy has added its own peer on the right.

        Returns:
            The address in its usual form; an IPv4 address inside of IPv6 as IPv4. If the entry in question
            is no address (``unknown``, an obfuscated identifier, nothing), that of the proxy that added it.
            If there are only proxies, the first of them.
        """
        client = str(ip_of(peer) or peer)
        if not self.includes(peer):
            return client
        for entry in reversed(forwarded_for.rsplit(",", MOST_HOPS)[-MOST_HOPS:]):
            named = _address_in(entry)
            if named is None:
                break
            client = str(named)
            if not self.includes(client):
                break
        return client


ON_THIS_HOST = Proxies((ip_network("127.0.0.0/8"), ip_network("::1/128")), is_unix=True)


def proxies() -> Proxies:
    """Return the proxies that stand before the web server.

    Behind TLS they are by default those on this host.

    Raises:
        InvalidVariable: an entry of GRIDCAST_PROXIES is neither an address, nor a network, nor ``unix``.
    """
    named = named_proxies(VARIABLE)
    is_default = not (named.networks or named.is_unix) and env.behind_tls()
    return ON_THIS_HOST if is_default else named


def named_proxies(variable: str) -> Proxies:
    """Return the proxies that *variable* lists.

    Raises:
        InvalidVariable: as ``proxies``.
    """
    texts = env.entries(variable)
    ranges = env.parse_networks(variable, [text for text in texts if text != UNIX], f"the word {UNIX}")
    return Proxies(ranges, UNIX in texts)


def _address_in(entry: str) -> IPv4Address | IPv6Address | None:
    match = _ENTRY.fullmatch(entry.strip(" \t"))
    return ip_of(match["bracketed"] or match["with_port"] or match["plain"]) if match else None
