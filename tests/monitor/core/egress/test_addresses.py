"""Targets have public addresses, whatever a URL or DNS says, unless the host is allowed."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from monitor.core.egress.addresses import InternalAddress, check_addresses, internal_kind, resolve
from monitor.core.egress.target import parse_target

PUBLIC = "93.184.215.14"


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
    target = parse_target(f"http://{host}/")
    with pytest.raises(InternalAddress, match=r"has the \w+ address"):
        check_addresses(target, resolve(target.host, target.port), internal_hosts=())


def test_a_name_with_a_public_and_an_internal_address_is_refused() -> None:
    target = parse_target("https://hooks.example.org/")
    with pytest.raises(InternalAddress, match=r"private address 10\.0\.0\.8"):
        check_addresses(target, [PUBLIC, "10.0.0.8"], ())
    check_addresses(target, [PUBLIC], ())


def test_a_host_is_allowed_by_the_name_in_its_url_only() -> None:
    allowed = {"hooks.internal", "10.0.0.8"}
    check_addresses(parse_target("https://Hooks.Internal:8443/a"), ["10.0.0.8"], allowed)
    check_addresses(parse_target("https://10.0.0.8/"), ["10.0.0.8"], allowed)
    with pytest.raises(InternalAddress):
        check_addresses(parse_target("https://other.internal/"), ["10.0.0.8"], allowed)
