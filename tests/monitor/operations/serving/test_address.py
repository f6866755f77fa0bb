from __future__ import annotations

import socket

import pytest

from monitor.management.commands import serve
from monitor.operations.serving.address import Address, InvalidAddress, listen_on_loopback


@pytest.mark.parametrize("text", ["127.0.0.1:8000", "0.0.0.0:80", "[::1]:8000", "[::]:443"])
def test_an_address_is_written_as_it_was_read(text: str) -> None:
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "8000", ":8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:-1"),
        *("127.0.0.1:http", "127.0.0.1:²", "example.org:8000", "127.0.0.1:8000/", "300.0.0.1:8000"),
    ],
)
def test_another_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidAddress) as refused:
        Address.parse(text)
    assert str(refused.value).endswith(f"such as 127.0.0.1:8000, got {text!r}")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000/"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000/"),
        ("[::]:8000", "http://[::1]:8000/"),
        ("192.0.2.7:80", "http://192.0.2.7:80/"),
    ],
)
def test_a_server_on_all_addresses_is_reached_on_loopback(text: str, url: str) -> None:
    assert Address.parse(text).local_url == url


@pytest.mark.parametrize(
    ("text", "hosts", "url"),
    [
        ("127.0.0.1:8000", ["localhost", "127.0.0.1"], "http://localhost:8000/"),
        ("[::]:8000", ["localhost"], "http://localhost:8000/"),
        ("127.0.0.1:8000", ["grid.example.org"], "http://127.0.0.1:8000/"),
        ("127.0.0.2:8000", ["localhost"], "http://127.0.0.2:8000/"),
        ("192.0.2.7:80", ["localhost"], "http://192.0.2.7:80/"),
    ],
)
def test_a_browser_is_sent_to_localhost_where_passkeys_work(text: str, hosts: list[str], url: str) -> None:
    assert Address.parse(text).browser_url(hosts) == url


def test_behind_a_tls_proxy_no_url_is_named_that_would_lead_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRIDCAST_URL", raising=False)
    monkeypatch.setenv("GRIDCAST_TLS", "1")
    words = serve._where(Address.parse("127.0.0.1:8000"))
    assert "http://" not in words
    assert words.startswith("127.0.0.1:8000, behind a TLS proxy (set GRIDCAST_URL")
    monkeypatch.setenv("GRIDCAST_URL", "https://grid.example.org")
    assert serve._where(Address.parse("127.0.0.1:8000")) == "https://grid.example.org"


@pytest.mark.parametrize(
    ("text", "is_loopback"), [("127.0.0.1:1", True), ("[::1]:1", True), ("0.0.0.0:1", False)]
)
def test_an_address_that_other_machines_reach_is_not_loopback(text: str, is_loopback: bool) -> None:
    assert Address.parse(text).is_loopback == is_loopback


def test_the_port_of_another_server_is_refused_or_skipped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match="Address already in use"):
            Address("127.0.0.1", port).listen()
        with listen_on_loopback(port) as listener:
            assert Address.of(listener).port > port


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_listening_socket_takes_its_address_and_accepts(host: str) -> None:
    with Address(host, 0).listen() as listener:
        address = Address.of(listener)
        assert address.host == host
        with pytest.raises(OSError, match="Address already in use"):
            address.listen()
        with socket.create_connection((host, address.port)):
            listener.accept()[0].close()
