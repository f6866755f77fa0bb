"""Which peers are proxies, and which address they name as that of the client."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.env import InvalidVariable
from monitor.operations.web_server.proxies import MOST_HOPS, ON_THIS_HOST, Proxies, proxies

PROXY, CLIENT, FORGED = "192.0.2.80", "203.0.113.7", "198.51.100.1"
OURS = Proxies(tuple(map(ipaddress.ip_network, (PROXY, "10.9.0.0/16", "2001:db8::/64"))), is_unix=True)


def test_proxies_are_addresses_networks_and_those_of_unix_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(proxies().includes(peer) for peer in ("127.0.0.1", "::1", ""))
    monkeypatch.setenv("GRIDCAST_PROXIES", "10.1.2.3, 10.9.0.0/16 ,2001:db8::/32,::ffff:10.8.0.0/112,unix,")
    peers = ["10.1.2.3", "::ffff:10.9.8.7", "10.8.0.9", "2001:db8::5", ""]
    others = ["10.1.2.4", "::1", "@abstract", "/run/client.sock"]
    assert [peer for peer in [*peers, *others] if proxies().includes(peer)] == peers


@pytest.mark.parametrize("text", ["proxy.example.org", "10.0.0.1/8", "10.0.0", "Unix", "*"])
def test_the_error_about_a_bad_proxy_names_the_variable(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("GRIDCAST_PROXIES", text)
    with pytest.raises(InvalidVariable, match=r"GRIDCAST_PROXIES: expected addresses and .* unix"):
        proxies()


@pytest.mark.parametrize(
    ("tls", "named", "value"),
    [
        ("1", "", "127.0.0.0/8,::1,unix"),
        ("0", "", ""),
        ("", "", ""),
        ("1", "192.0.2.80", "192.0.2.80"),
        ("0", "unix", "unix"),
    ],
)
def test_behind_tls_the_proxy_is_on_this_host_unless_another_is_named(
    monkeypatch: pytest.MonkeyPatch, tls: str, named: str, value: str
) -> None:
    monkeypatch.setenv("GRIDCAST_TLS", tls)
    monkeypatch.setenv("GRIDCAST_PROXIES", named)
    assert str(proxies()) == value


@pytest.mark.parametrize("peer", [PROXY, "10.9.1.1", "2001:db8::9", f"::ffff:{PROXY}", ""])
def test_the_client_is_the_rightmost_address_that_is_no_proxy(peer: str) -> None:
    assert OURS.client_of(peer, f"{FORGED}, {CLIENT}") == CLIENT
    assert OURS.client_of(peer, f"{FORGED}, {CLIENT}, 10.9.2.2,{PROXY}") == CLIENT


@pytest.mark.parametrize("peer", [FORGED, "127.0.0.1", "::1", "@name"])
def test_any_other_peer_is_itself_the_client(peer: str) -> None:
    assert OURS.client_of(peer, CLIENT) == peer


def test_without_its_header_the_proxy_is_the_client() -> None:
    assert OURS.client_of(PROXY, "") == PROXY
    assert OURS.client_of("", "") == ""


def test_where_all_are_proxies_the_first_of_them_is_the_client() -> None:
    assert OURS.client_of(PROXY, "10.9.0.1, 10.9.0.2") == "10.9.0.1"


@pytest.mark.parametrize(
    ("entry", "client"),
    [
        (f"{CLIENT}:4711", CLIENT),
        (f"[{CLIENT}]", CLIENT),
        ("2001:db8:1::7", "2001:db8:1::7"),
        ("[2001:db8:1::7]", "2001:db8:1::7"),
        ("[2001:DB8:1:0::7]:443", "2001:db8:1::7"),
        (f"::ffff:{CLIENT}", CLIENT),
        (f"[::ffff:{CLIENT}]:80", CLIENT),
        (f"\t{CLIENT} ", CLIENT),
    ],
)
def test_ports_brackets_and_embedded_ipv4_addresses_are_understood(entry: str, client: str) -> None:
    assert OURS.client_of(PROXY, f"{FORGED}, {entry}") == client


@pytest.mark.parametrize(
    "entry",
    [
        *("", "unknown", "_hidden", "_SEVKISEK", "localhost", "proxy.example.org", '"192.0.2.1"'),
        *("192.0.2", "192.0.2.256", "192.0.2.01", "192.0.2.1.1", "192.0.2.1/24", "3232235521", "0x7f000001"),
        *("[2001:db8::7", "2001:db8::7]", "[]", "[192.0.2.1]:x", "192.0.2.1:", "192.0.2.1:123456", ":443"),
        *("fe80::1%eth0", "::1::", "2001:db8::7:::443", "\0", "192.0.2.1\0", "a" * 8000, "for=192.0.2.1"),
        "\u0661\u0669\u0662.0.2.1",
    ],
)
def test_of_an_entry_that_is_no_address_the_client_is_the_proxy_that_added_it(entry: str) -> None:
    """A proxy writes it for a peer that it does not want to name; what stands before it is not believed."""
    assert OURS.client_of(PROXY, f"{FORGED}, {entry}") == PROXY
    assert OURS.client_of(PROXY, f"{FORGED}, {entry}, 10.9.0.5") == "10.9.0.5"


def test_ten_thousand_entries_cost_no_more_than_those_that_are_read() -> None:
    assert OURS.client_of(PROXY, ", ".join([FORGED] * 10_000 + [CLIENT])) == CLIENT
    only_proxies = ",".join(f"10.9.{number // 250}.{number % 250}" for number in range(10_000))
    assert OURS.client_of(PROXY, only_proxies) == only_proxies.split(",")[-MOST_HOPS]


@given(st.text(max_size=200), st.sampled_from([PROXY, "", FORGED]))
def test_whatever_a_client_writes_its_own_address_counts(text: str, peer: str) -> None:
    """The proxy appends the address of its peer to what the client sent."""
    assert OURS.client_of(peer, f"{text},{CLIENT}") == (FORGED if peer == FORGED else CLIENT)


@pytest.mark.parametrize("peer", ["192.0.2.9", "2001:db8:5::1", "::ffff:192.0.2.9", ""])
def test_the_line_to_add_names_the_peer_and_the_proxies_of_before(
    monkeypatch: pytest.MonkeyPatch, peer: str
) -> None:
    for before in (ON_THIS_HOST, Proxies((), is_unix=False), OURS):
        monkeypatch.setenv("GRIDCAST_PROXIES", str(before.with_peer(peer)))
        assert proxies().includes(peer)
        assert not str(before.without(proxies()))
