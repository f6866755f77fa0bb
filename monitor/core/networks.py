"""Addresses of clients, and their networks. An IPv4 address inside of IPv6 counts as IPv4."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

HOST_BITS = 64  # a provider gives a customer at least such an IPv6 network; one host usually has it


def ip_of(address: str) -> IPv4Address | IPv6Address | None:
    """Return *address* as an IP address; None if it is none, such as that of a Unix socket."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


def unmapped(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    """Return the IPv4 network that *network* is if it lies inside of ``::ffff:0:0/96``, else *network*."""
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    bits = network.prefixlen - 96
    return IPv4Network((mapped, bits)) if mapped is not None and bits >= 0 else network


def ipv6_network(address: IPv6Address, bits: int = HOST_BITS) -> IPv6Network:
    """Return the network of *bits* that *address* belongs to."""
    return IPv6Network((address, bits), strict=False)


def is_within(address: str, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    """Return whether *address* belongs to one of *networks*."""
    parsed = ip_of(address)
    return parsed is not None and any(parsed in network for network in networks)
