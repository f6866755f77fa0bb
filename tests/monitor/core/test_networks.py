"""Addresses of clients and their networks."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from monitor.core.networks import ip_of, is_within
from monitor.depot.access.denials import network_of


@pytest.mark.parametrize("text", ["192.0.2.7", "::ffff:192.0.2.7"])
def test_an_ipv4_address_is_the_same_inside_of_ipv6(text: str) -> None:
    assert ip_of(text) == ip_address("192.0.2.7")
    assert is_within(text, [ip_network("192.0.2.0/24")])
    assert network_of(text) == "192.0.2.7"


@pytest.mark.parametrize("text", ["", "unix:", "192.0.2", "example.org"])
def test_what_is_no_address_belongs_to_no_network(text: str) -> None:
    assert ip_of(text) is None
    assert not is_within(text, [ip_network("0.0.0.0/0"), ip_network("::/0")])
    assert network_of(text) == ""
