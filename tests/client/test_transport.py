"""Requests over real sockets: servers that are away, slow, hostile, or behind a proxy."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from gridcast_client import (
    MOST_ANSWER_BYTES,
    Client,
    GridcastError,
    HttpTransport,
    InvalidInput,
    Overloaded,
    Refused,
    TimedOut,
    Unreachable,
    Untrusted,
    UnusableAnswer,
)
from monitor.testbed.middleware.pki import Authority
from tests.client.raw_server import RawServer, http, raw_server
from tests.reporters.needs import needs

RANKING = http(b'{"quantile": 0.9, "at": "2026-03-01T12:00:00Z", "ranked": [], "unranked": []}')
NOWHERE = "http://127.0.0.1:9"  # the port of discard, which nothing serves


def client_of(port: int, *, timeout_seconds: float = 30.0, tries: int = 1, host: str = "127.0.0.1") -> Client:
    url = f"http://{host}:{port}"
    return Client(url, "secret", timeout_seconds=timeout_seconds, tries=tries, environ={})


def answers(data: bytes) -> contextlib.AbstractContextManager[RawServer]:
    return raw_server(lambda connection, _: connection.sendall(data))


def failure(client: Client, kind: type[GridcastError]) -> str:
    with pytest.raises(kind) as raised:
        client.rank(["a"])
    assert type(raised.value) is kind
    return str(raised.value)


def test_a_request_carries_token_agent_and_id() -> None:
    with answers(RANKING) as server:
        client = Client(f"http://127.0.0.1:{server.port}/base/", "secret", user_agent="slurm/1.0", environ={})
        client.rank(["a"])
    head = server.heads[0].decode()
    assert head.startswith("POST /base/api/v1/forecasts/rank HTTP/1.1\r\n")
    for line in (f"Host: 127.0.0.1:{server.port}", "Authorization: Bearer secret", "Connection: close"):
        assert f"\r\n{line}\r\n" in head
    assert "\r\nUser-Agent: slurm/1.0 gridcast-client/" in head
    assert "\r\nX-Request-ID: " in head


def test_a_server_that_is_away_is_unreachable() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    said = failure(client_of(port), Unreachable)
    assert f"no answer from 127.0.0.1:{port}: Connection refused" in said


def test_a_name_without_an_address_is_unreachable() -> None:
    client = Client("https://no.such.host.invalid", environ={}, proxy="none", tries=1)
    assert "no answer from no.such.host.invalid: " in failure(client, Unreachable)


@pytest.mark.parametrize("piece", [b"", b"HTTP/1.1 200 OK\r\nX: "], ids=["silent", "dripping a header"])
def test_a_slow_server_is_left_at_the_time_limit(piece: bytes) -> None:
    def drip(connection: socket.socket, _: bytes) -> None:
        connection.sendall(piece)
        while not server.stopped.wait(0.02):
            if piece:
                connection.sendall(b"x")

    with raw_server(drip) as server:
        said = failure(client_of(server.port, timeout_seconds=0.3), TimedOut)
    assert "no whole answer within 0.3 s" in said


def test_a_server_that_drips_its_body_is_left_at_the_time_limit() -> None:
    def drip(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not server.stopped.wait(0.02):
            connection.sendall(b"1\r\nx\r\n")

    with raw_server(drip) as server:
        assert "within 0.3 s" in failure(client_of(server.port, timeout_seconds=0.3), TimedOut)


def test_a_server_that_reads_no_body_is_left_at_the_time_limit() -> None:
    def wait(_: socket.socket, __: bytes) -> None:
        server.stopped.wait()

    with raw_server(wait) as server:
        client = client_of(server.port, timeout_seconds=0.3)
        with pytest.raises(TimedOut):
            client.rank(["x" * 200] * 100_000)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_not_followed(status: str) -> None:
    with raw_server(lambda *_: None) as other:
        target = f"http://127.0.0.1:{other.port}/api/v1/forecasts/rank"
        with answers(http(b"", status, Location=target)) as server:
            said = failure(client_of(server.port), UnusableAnswer)
        assert other.heads == []
    assert f"redirected to {target}: a token is sent to no other address" in said


@pytest.mark.parametrize("has_length", [True, False])
def test_a_huge_answer_is_cut(has_length: bool) -> None:
    length = f"Content-Length: {10**12}\r\n" if has_length else ""
    pieces = [f"HTTP/1.1 200 OK\r\n{length}\r\n".encode(), *[b"x" * 1024 * 1024] * 17]

    def flood(connection: socket.socket, _: bytes) -> None:
        for piece in pieces:
            connection.sendall(piece)

    with raw_server(flood) as server:
        said = failure(client_of(server.port), UnusableAnswer)
    assert f"larger than {MOST_ANSWER_BYTES} bytes" in said


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        (b"", Unreachable, "Remote end closed connection"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", Unreachable, "ended too early"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", Unreachable, "ended too early"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", UnusableAnswer, "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", UnusableAnswer, "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, UnusableAnswer, "does not answer in HTTP"),
        (http(b"<html>"), UnusableAnswer, "expected JSON, got '<html>'"),
        (http(b"", "502 Bad Gateway"), Overloaded, "502 Bad Gateway"),
        (http(b"\xff", "404 Not Found"), Refused, "404 Not Found"),
    ],
)
def test_what_is_no_answer_of_gridcast_is_named(data: bytes, kind: type[GridcastError], said: str) -> None:
    with answers(data) as server:
        assert said in failure(client_of(server.port), kind)


def test_a_refusal_of_a_body_that_was_not_read_arrives() -> None:
    """The server answers, and closes, while the client is still sending."""

    refusal = http(b'{"code": "too_large", "detail": "at most 8 bytes"}', "413 Too Large")
    with answers(refusal) as server, pytest.raises(Refused, match="413 too_large: at most 8 bytes"):
        client_of(server.port).rank(["x" * 200] * 20_000)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    needs("openssl")
    return Authority.create(tmp_path_factory.mktemp("pki") / "authority")


@pytest.fixture(scope="module")
def tls(authority: Authority) -> ssl.SSLContext:
    identity = authority.host("localhost", ["localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    return context


def ranks(connection: socket.socket, _: bytes) -> None:
    connection.sendall(RANKING)


def test_a_server_is_trusted_by_the_authority_in_a_file(authority: Authority, tls: ssl.SSLContext) -> None:
    with raw_server(ranks, tls) as server:
        ca_file = str(authority.identity.certificate)
        client = Client(f"https://localhost:{server.port}", ca_file=ca_file, environ={})
        assert client.rank(["a"]).ranked == ()
        from_environment = {"GRIDCAST_CA_FILE": ca_file, "GRIDCAST_URL": f"https://localhost:{server.port}"}
        assert Client(environ=from_environment).rank(["a"]).ranked == ()


@pytest.mark.parametrize(
    ("host", "has_file"),
    [("localhost", False), ("127.0.0.1", True)],
    ids=["unknown authority", "another name"],
)
def test_a_server_of_another_authority_or_name_gets_no_request(
    authority: Authority, tls: ssl.SSLContext, host: str, has_file: bool
) -> None:
    with raw_server(ranks, tls) as server:
        ca_file = str(authority.identity.certificate) if has_file else None
        client = Client(f"https://{host}:{server.port}", "secret", ca_file=ca_file, environ={})
        said = failure(client, Untrusted)
        assert server.heads == []
    assert f"the certificate of {host}:{server.port} is not trusted" in said


def test_certificates_that_are_none_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for file in ("ca.pem", "missing.pem"):
        with pytest.raises(InvalidInput, match=f"cannot use the certificates in .*{file}"):
            HttpTransport(ca_file=str(tmp_path / file))


# Proxies


def tunnel(connection: socket.socket, head: bytes) -> None:
    """Connect the other side of CONNECT, and copy both ways until one side closes."""
    host, _, port = head.split()[1].decode().rpartition(":")
    with socket.create_connection((host, int(port))) as server:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        pairs = {connection: server, server: connection}
        while True:
            for ready in select.select(list(pairs), [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    return
                pairs[ready].sendall(data)


@pytest.fixture
def proxy() -> Iterator[RawServer]:
    with raw_server(tunnel) as server:
        yield server


def test_tls_goes_through_a_tunnel_and_the_proxy_sees_no_token(
    proxy: RawServer, authority: Authority, tls: ssl.SSLContext
) -> None:
    with raw_server(ranks, tls) as server:
        url = f"https://localhost:{server.port}"
        ca_file = str(authority.identity.certificate)
        through = f"http://ada:open%20sesame@127.0.0.1:{proxy.port}"
        client = Client(url, "secret", ca_file=ca_file, proxy=through, environ={})
        assert client.rank(["a"]).ranked == ()
        assert b"Proxy-Authorization" not in server.heads[0]
    head = proxy.heads[0].decode()
    assert head.startswith(f"CONNECT localhost:{server.port} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic YWRhOm9wZW4gc2VzYW1l\r\n" in head
    assert "secret" not in head


def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with answers(RANKING) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "inside.example.org")
        client = Client("http://grid.example.org/", plain_http=True, tries=1, environ={})
        assert client.rank(["a"]).ranked == ()
        assert proxy.heads[0].startswith(b"POST http://grid.example.org/api/v1/forecasts/rank HTTP/1.1\r\n")
        client = Client("http://inside.example.org", plain_http=True, tries=1, timeout_seconds=5, environ={})
        with pytest.raises(GridcastError):
            client.rank(["a"])
        assert len(proxy.heads) == 1


def test_a_proxy_that_refuses_is_named() -> None:
    with answers(http(b"", "407 Proxy Authentication Required")) as proxy:
        through = f"http://ada:hidden@127.0.0.1:{proxy.port}"
        client = Client("https://grid.example.org", tries=1, proxy=through, environ={})
        said = failure(client, Unreachable)
    assert f"no answer from grid.example.org through the proxy 127.0.0.1:{proxy.port}" in said
    assert "407 Proxy Authentication Required" in said
    assert "hidden" not in said


@pytest.mark.parametrize("text", ["socks5://127.0.0.1", "https://127.0.0.1:1", "http://", "http://h:port"])
def test_other_proxies_are_refused_at_once(text: str) -> None:
    with pytest.raises(InvalidInput, match="proxy: expected the URL of an HTTP proxy"):
        HttpTransport(proxy=text)
