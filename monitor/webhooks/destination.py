"""The destination of a webhook: its URL, and the addresses to which gridcast connects.

A webhook must not reach what only this host or its network may reach: internal services, a cloud's metadata.
The name is resolved once; every address is checked, and the connection goes to a checked address, so another
answer of DNS later changes nothing. TLS is verified by the name. Redirects are not followed.

Errors::

    DestinationError
    |-- InvalidUrl           the URL is unusable                                      permanent
    '-- DestinationRefused   the host or its address may not receive webhooks         temporary (DNS)
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

PORTS = {"http": 80, "https": 443}
HIDDEN = "…"  # begins what pages and API show instead of a path
# Services of clouds at addresses that are otherwise public.
_METADATA = frozenset({ip_address("168.63.129.16"), ip_address("192.0.0.192")})
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))  # the last 32 bits are an IPv4 address
Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Sequence[str]]


class DestinationError(Exception):
    """Root of the errors of destinations."""


class InvalidUrl(DestinationError):
    pass


class DestinationRefused(DestinationError):
    pass


@dataclass(frozen=True)
class WebhookDestination:
    """A URL in parts. *path* includes the query; *host* is in lower case, without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """The URL without its path, which may be a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


def parse(url: str) -> WebhookDestination:
    """Return *url* in parts.

    Raises:
        InvalidUrl: it is no http or https URL, or contains a password.
    """
    if f"/{HIDDEN}" in url:
        raise InvalidUrl("its path is hidden from you: enter the whole URL")
    expected = f"expected a URL such as https://hooks.example.org/gridcast, got {url!r}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # an invalid port or bracket
        raise InvalidUrl(expected) from None
    is_plain = url.isprintable() and url.isascii() and " " not in url and "\\" not in url
    if parts.scheme not in PORTS or not host or port == 0 or not is_plain:
        raise InvalidUrl(expected)
    if "@" in parts.netloc:
        raise InvalidUrl("expected a URL without a password; use secret_variable instead")
    query = f"?{parts.query}" if parts.query else ""
    return WebhookDestination(parts.scheme, host, port or PORTS[parts.scheme], f"{parts.path or '/'}{query}")


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of *host*, as the system resolves it; raises OSError if there are none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def checked_addresses(
    destination: WebhookDestination, allowed: Collection[str], resolve: Resolve = resolve
) -> Sequence[str]:
    """Return the addresses of *destination*, all of which may receive webhooks.

    *allowed* are names and addresses, as URLs have them, that may be internal.

    Raises:
        DestinationRefused: one of the addresses is internal, and the host is not in *allowed*.
        OSError: the host has no address.
    """
    addresses = resolve(destination.host, destination.port)
    if destination.host in allowed:
        return addresses
    for text in addresses:
        if (kind := internal_kind(ip_address(text.partition("%")[0]))) is not None:
            raise DestinationRefused(
                f"{destination.host} has the {kind} address {text}: add the host to"
                " GRIDCAST_INTERNAL_WEBHOOK_HOSTS if webhooks may go there"
            )
    return addresses


def internal_kind(address: Address) -> str | None:
    """Return what makes *address* internal; None for a public unicast address.

    An IPv6 address that contains an IPv4 address is as internal as that one.
    """
    if isinstance(address, IPv6Address) and (inner := _embedded(address)) is not None:
        return internal_kind(inner)
    kinds = {
        "metadata": address in _METADATA,
        "loopback": address.is_loopback,
        "link-local": address.is_link_local,
        "multicast": address.is_multicast,
        "unspecified": address.is_unspecified,
        "private": address.is_private or (isinstance(address, IPv6Address) and address.is_site_local),
        "reserved": address.is_reserved or not address.is_global,
    }
    return next((kind for kind, applies in kinds.items() if applies), None)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address in *address*: mapped, compatible, 6to4, Teredo's client, or NAT64."""
    low_bits = IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    is_compatible = int(address) >> 32 == 0 and int(address) > 1
    return low_bits if is_compatible or any(address in network for network in _NAT64) else None
