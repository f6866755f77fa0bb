"""Webhooks reach public addresses only, whatever a URL or DNS says, unless the settings allow the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address

import pytest

from monitor.webhooks.destination import (
    DestinationRefused,
    InvalidUrl,
    checked_addresses,
    internal_kind,
    parse,
    resolve,
)

PUBLIC = "93.184.215.14"


def answering(*addresses: str) -> Callable[[str, int], Sequence[str]]:
    return lambda _host, _port: addresses


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("169.254.169.254", "link-local"),
        ("100.64.0.1", "reserved"),
        ("100.100.100.200", "reserved"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.192", "metadata"),
        ("192.0.2.1", "private"),
        ("198.18.0.1", "private"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.250", "multicast"),
        ("255.255.255.255", "private"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:10.0.0.1", "private"),
        ("::7f00:1", "loopback"),
        ("fe80::1", "link-local"),
        ("fec0::1", "private"),
        ("fd00:ec2::254", "private"),
        ("ff02::1", "multicast"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("2002:7f00:1::", "loopback"),
        ("2002:a00:1::", "private"),
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", "loopback"),
        ("2001:db8::1", "private"),
        (PUBLIC, None),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", None),
        (f"::ffff:{PUBLIC}", None),
        ("64:ff9b::5db8:d70e", None),
    ],
)
def test_an_address_is_internal_or_public(address: str, kind: str | None) -> None:
    assert internal_kind(ip_address(address)) == kind


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ],
)
def test_no_notation_of_this_host_is_accepted(host: str) -> None:
    with pytest.raises(DestinationRefused, match="GRIDCAST_INTERNAL_WEBHOOK_HOSTS"):
        checked_addresses(parse(f"http://{host}/"), allowed=(), resolve=resolve)


def test_a_name_with_a_public_and_an_internal_address_is_refused() -> None:
    destination = parse("https://hooks.example.org/")
    with pytest.raises(DestinationRefused, match=r"private address 10\.0\.0\.8"):
        checked_addresses(destination, (), answering(PUBLIC, "10.0.0.8"))
    assert checked_addresses(destination, (), answering(PUBLIC)) == (PUBLIC,)


def test_a_host_is_allowed_by_the_name_in_its_url_only() -> None:
    internal = answering("10.0.0.8")
    allowed = {"hooks.internal", "10.0.0.8"}
    assert checked_addresses(parse("https://Hooks.Internal:8443/a"), allowed, internal)
    assert checked_addresses(parse("https://10.0.0.8/"), allowed, internal)
    with pytest.raises(DestinationRefused):
        checked_addresses(parse("https://other.internal/"), allowed, internal)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org\\@127.0.0.1/",
        "http://127.0.0.1:80@example.org/",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://①②⑦.⓪.⓪.①/",
        "HTTP://",
        "http:///path",
        "dict://127.0.0.1:6379/",
    ],
)
def test_an_ambiguous_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidUrl, match="expected a URL"):
        parse(url)


def test_the_origin_leaves_out_the_path() -> None:
    assert parse("https://hooks.example.org/t0ken?k=v").origin == "https://hooks.example.org"
    assert parse("http://[::1]:8080/").origin == "http://[::1]:8080"
