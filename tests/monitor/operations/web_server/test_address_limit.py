"""The number of connections of an address, counted."""

from __future__ import annotations

import logging

import pytest

from monitor.operations.web_server.address_limit import LOG_SECONDS, AddressLimit
from monitor.operations.web_server.proxies import Proxies

NOBODY = Proxies((), False)


def test_connections_of_an_ipv6_network_and_those_of_an_embedded_ipv4_address_count_together() -> None:
    limit = AddressLimit(1, NOBODY, logging.getLogger(__name__))
    added = [
        limit.add(host) for host in ("10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2001:db8::2", "10.0.0.2")
    ]
    assert added == [0, 1, 0, 1, 0]
    limit.remove("2001:db8::1")
    limit.remove("2001:db8::1")
    assert limit.add("2001:db8::3") == 0


def test_unix_sockets_are_exempt_only_as_proxies() -> None:
    for is_unix, surplus in ((True, 0), (False, 1)):
        limit = AddressLimit(1, Proxies((), is_unix), logging.getLogger(__name__))
        assert [limit.add("") for _ in range(2)] == [0, surplus]


def test_refusals_are_logged_once_a_minute_with_their_number(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    limit = AddressLimit(7, NOBODY, logging.getLogger(__name__), clock=lambda: now)
    for _ in range(5):
        limit.log_refused("10.0.0.1")
    now += LOG_SECONDS
    limit.log_refused("10.0.0.2")
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "1 connections refused, the last of 10.0.0.1",
        "5 connections refused, the last of 10.0.0.2",
    ]
