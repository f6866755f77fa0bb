"""The addresses of a host: resolved once, within a deadline, and checked.

What users name must not reach what only this host or its network may reach: internal services, a cloud's
metadata. Every address is checked, and the connection goes to a checked address, so another answer of DNS
later changes nothing.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from monitor.core.egress.deadline import CallDeadline
from monitor.core.egress.errors import TargetRefused
from monitor.core.egress.target import EgressTarget

# Services of clouds at addresses that are otherwise public.
_METADATA = frozenset({ip_address("168.63.129.16"), ip_address("192.0.0.192")})
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))  # the last 32 bits are an IPv4 address
_LOOKUPS = 16  # at once in a process: one that hangs keeps its thread until the resolver gives up
Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Sequence[str]]
_lookups = threading.BoundedSemaphore(_LOOKUPS)


class InternalAddress(TargetRefused):
    """A host has an address that only this host or its network may reach."""


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of *host*, as the system resolves it; raises OSError if there are none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def resolve_within(deadline: CallDeadline, resolve: Resolve, target: EgressTarget) -> Sequence[str]:
    """Return the addresses of *target*. The system's resolver has no deadline, so a thread waits for it.

    Raises:
        OSError: the host has no address, or none until *deadline*.
    """
    if not _lookups.acquire(timeout=deadline.left()):
        raise deadline.over()
    addresses: Future[Sequence[str]] = Future()

    def look_up() -> None:
        try:
            addresses.set_result(resolve(target.host, target.port))
        except (OSError, ValueError) as error:  # ValueError: a label of the name is too long
            addresses.set_exception(error)
        finally:
            _lookups.release()

    threading.Thread(target=look_up, name=f"look up {target.host}", daemon=True).start()
    try:
        return addresses.result(deadline.left())
    except TimeoutError:
        raise deadline.over() from None


def check_addresses(
    target: EgressTarget, addresses: Sequence[str], internal_hosts: Collection[str] | None
) -> None:
    """Return if *target* may be asked at *addresses*.

    *internal_hosts* are names and addresses, as URLs have them, that may be internal; None: any host.

    Raises:
        InternalAddress: one of the addresses is internal, and the host is not in *internal_hosts*.
    """
    if internal_hosts is None or target.host in internal_hosts:
        return
    for text in addresses:
        if (kind := internal_kind(ip_address(text.partition("%")[0]))) is not None:
            raise InternalAddress(f"{target.host} has the {kind} address {text}")


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
