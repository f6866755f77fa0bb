"""Requests to the server, over a real HTTPS server that a test scripts, and a real proxy."""

from __future__ import annotations

import base64
import json
import shutil
import ssl
import subprocess
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from monitor.testbed.middleware.pki import Authority
from reporters.remote.errors import UsageFault
from reporters.remote.server import (
    Answer,
    ServerClient,
    ServerRefused,
    ServerUnavailable,
    parse_proxy,
    parse_url,
    proxy_for,
)
from tests.reporters.needs import needs
from tests.reporters.remote.tunnel import tunnel
from tests.reporters.scripted_https import Connection, Request, ScriptedServer, scripted_server

PROBLEM = b'{"status": 403, "code": "not_yours", "detail": "the path names another reporter"}'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    needs("openssl")
    return Authority.create(tmp_path_factory.mktemp("authority") / "ca")


def client(server: ScriptedServer, authority: Authority, proxy: str = "none") -> ServerClient:
    url = parse_url(f"https://localhost:{server.port}")
    ca_file = str(authority.identity.certificate)
    return ServerClient(url, ca_file=ca_file, proxy=proxy_for(url, proxy))


def post(
    authority: Authority, script: Callable[[Connection, Request], None], body: bytes = b"{}", **limits: float
) -> Answer:
    with scripted_server(authority, script) as server:
        return client(server, authority).post("x/exchange", body, {}, **limits)  # type: ignore[arg-type]


def test_the_body_arrives_and_the_answer_comes_back(authority: Authority) -> None:
    def answer(connection: Connection, request: Request) -> None:
        assert (request.method, request.path) == ("POST", "/api/v1/reporters/x/exchange")
        connection.answer(200, b'{"n": %d}' % len(request.body))

    assert post(authority, answer, b"x" * 3_000_000).document() == {"n": 3_000_000}


def test_a_certificate_of_another_authority_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    other = Authority.create(tmp_path / "other")
    with scripted_server(authority, lambda connection, _: connection.answer(200)) as server:
        with pytest.raises(ServerUnavailable, match=r"certificate is not trusted: .*; check that .* has the"):
            client(server, other).post("x/exchange", b"", {})
        without = ServerClient(parse_url(f"https://localhost:{server.port}"))
        with pytest.raises(ServerUnavailable, match=r"not trusted: .*name its certificates with --ca-file"):
            without.post("x/exchange", b"", {})
        assert server.requests == []


@pytest.mark.parametrize("is_listed", [True, False])
def test_the_authorities_of_the_system_are_trusted_from_a_directory_or_a_file(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_listed: bool
) -> None:
    """Some systems have a directory without the names by which OpenSSL finds a certificate."""
    directory = tmp_path / "certs"
    directory.mkdir()
    shutil.copy(authority.identity.certificate, directory / "authority.pem")
    monkeypatch.setenv("SSL_CERT_DIR", str(directory))
    if is_listed:
        subprocess.run(["openssl", "rehash", str(directory)], check=True)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    else:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.identity.certificate))
    with scripted_server(authority, lambda connection, _: connection.answer(200)) as server:
        system = ServerClient(parse_url(f"https://localhost:{server.port}"))
        assert system.post("x", b"1", {}).status == 200
        assert system.post("x", b"2", {}).status == 200
        assert [request.body for request in server.requests] == [b"1", b"2"]


def test_a_certificate_of_another_host_is_not_trusted(authority: Authority) -> None:
    with scripted_server(authority, lambda connection, _: connection.answer(200)) as server:
        url = parse_url(f"https://127.0.0.1:{server.port}")
        with pytest.raises(ServerUnavailable, match="certificate is not trusted"):
            ServerClient(url, ca_file=str(authority.identity.certificate)).post("x", b"", {})
        assert server.requests == []


def test_an_old_version_of_tls_is_refused_before_anything_is_sent(authority: Authority) -> None:
    with scripted_server(authority, lambda connection, _: connection.answer(200), _only_tls_1_1) as server:
        with pytest.raises(ServerUnavailable, match=r"(?i)version|protocol"):
            client(server, authority).post("x", b"", {})
        assert server.requests == []


def _only_tls_1_1(context: ssl.SSLContext) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")


def test_no_redirect_is_followed(authority: Authority) -> None:
    def redirect(connection: Connection, request: Request) -> None:
        connection.answer(307, Location=f"https://{request.headers['Host']}/elsewhere")

    with scripted_server(authority, redirect) as server:
        with pytest.raises(ServerUnavailable, match=r"refused a redirect to https://localhost:\d+/elsewhere"):
            client(server, authority).post("x", b"", {})
        assert len(server.requests) == 1


def test_a_huge_answer_is_not_read_to_its_end(authority: Authority) -> None:
    def endless(connection: Connection, _: Request) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.send(b"x" * 65536)

    with pytest.raises(ServerUnavailable, match="the answer is larger than 8388608 bytes"):
        post(authority, endless)


def test_a_server_that_sends_a_byte_now_and_then_is_left_at_the_time_limit(authority: Authority) -> None:
    def slow(connection: Connection, _: Request) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        connection.wait_for_its_end()

    with pytest.raises(ServerUnavailable, match=r"x/exchange: no whole answer within 0.5 s"):
        post(authority, slow, timeout_seconds=0.5)


@pytest.mark.parametrize("sent", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_an_answer_that_is_no_http_is_no_answer(authority: Authority, sent: bytes) -> None:
    with pytest.raises(ServerUnavailable, match="the connection"):
        post(authority, lambda connection, _: connection.send(sent))


@pytest.mark.parametrize(
    "body", [b"<html>log in first</html>", b"[]", b'{"a": NaN}', b"\xff", b"[" * 100_000]
)
def test_an_answer_that_is_no_json_object_blames_the_url_or_a_proxy(
    authority: Authority, body: bytes
) -> None:
    answer = post(authority, lambda connection, _: connection.answer(200, body))
    with pytest.raises(ServerUnavailable, match=r"the answer is no answer of gridcast: .*check that the URL"):
        answer.document()


def test_a_refusal_has_its_code_and_its_fields(authority: Authority) -> None:
    with pytest.raises(ServerRefused, match=r"403: the path names another reporter$") as refused:
        post(authority, lambda connection, _: connection.answer(403, PROBLEM))
    assert (refused.value.status, refused.value.code) == (403, "not_yours")
    assert refused.value.fields["status"] == 403


def test_the_reason_of_a_refusal_is_whole_and_on_one_line(authority: Authority) -> None:
    sentence = "there is no valid code like this: it is unknown, was used, or is older than 15 minutes"
    problem = json.dumps({"detail": f"{sentence}\n\x1b[31m" + "x" * 1000}).encode()
    with pytest.raises(ServerRefused) as refused:
        post(authority, lambda connection, _: connection.answer(403, problem))
    text = str(refused.value)
    assert f": 403: {sentence}  [31mxxx" in text
    assert text.endswith("x...")
    assert len(text) < 600


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [(503, "7", 7.0), (429, "", None), (507, "soon", None), (500, "999999999", 3600.0), (502, "-1", None)],
)
def test_a_temporary_error_says_when_to_try_again(
    authority: Authority, status: int, header: str, seconds: float | None
) -> None:
    with pytest.raises(ServerUnavailable) as unavailable:
        post(authority, lambda connection, _: connection.answer(status, b"<html>", Retry_After=header))
    assert unavailable.value.retry_after_seconds == seconds


def test_the_time_to_try_again_may_be_a_date(authority: Authority) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=1000), usegmt=True)
    with pytest.raises(ServerUnavailable) as unavailable:
        post(authority, lambda connection, _: connection.answer(503, Retry_After=at))
    assert 900 < (unavailable.value.retry_after_seconds or 0) <= 1000


def test_requests_go_through_the_proxy(authority: Authority) -> None:
    with (
        tunnel() as proxy,
        scripted_server(authority, lambda connection, _: connection.answer(200, b"{}")) as server,
    ):
        assert client(server, authority, proxy.url).post("x", b"abc", {}).document() == {}
        assert proxy.requests == [f"localhost:{server.port}"]


def test_the_proxy_gets_the_user_and_the_password_of_its_url(authority: Authority) -> None:
    expected = "Basic " + base64.b64encode(b"me:p@ss").decode()
    with (
        tunnel(expected) as proxy,
        scripted_server(authority, lambda connection, _: connection.answer(200, b"{}")) as server,
    ):
        with pytest.raises(
            ServerUnavailable, match=r"through the proxy .* refused a connection .*: 407 .*; check"
        ):
            client(server, authority, proxy.url).post("x", b"", {})
        with_user = proxy.url.replace("//", "//me:p%40ss@")
        assert client(server, authority, with_user).post("x", b"", {}).document() == {}


def test_a_proxy_that_is_away_is_named(authority: Authority) -> None:
    with tunnel() as proxy:
        pass
    with scripted_server(authority, lambda connection, _: connection.answer(200)) as server:
        with pytest.raises(
            ServerUnavailable,
            match=f"cannot connect to 127.0.0.1:{proxy.port}: .*; check --proxy or https_proxy",
        ):
            client(server, authority, proxy.url).post("x", b"", {})
        assert server.requests == []


def test_the_environment_names_the_proxy_and_the_hosts_without_it() -> None:
    url = parse_url("https://grid.example.org/gridcast/")
    environment = {"HTTPS_PROXY": "http://proxy:3128"}
    proxy = proxy_for(url, "", environment)
    assert proxy is not None
    assert proxy.server.address == "proxy:3128"
    for exceptions in ("example.org", ".example.org", "*", "other, grid.example.org"):
        assert proxy_for(url, "", {**environment, "NO_PROXY": exceptions}) is None
    assert proxy_for(url, "", {**environment, "no_proxy": "example.com"}) is not None
    assert proxy_for(url, "none", environment) is None
    assert proxy_for(parse_url("http://localhost:8000"), "", environment) is None
    assert proxy_for(url, "", {}) is None


@pytest.mark.parametrize(
    "text", ["https://proxy:3128", "socks5://proxy", "http://", "http://proxy:x", "http://a b"]
)
def test_only_http_proxies_are_accepted(text: str) -> None:
    with pytest.raises(UsageFault, match="proxy"):
        parse_proxy(text)


def test_a_proxy_does_not_show_its_password() -> None:
    assert "secret" not in repr(parse_proxy("http://me:secret@proxy"))


@pytest.mark.parametrize(
    "url", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]", "https://a.example"]
)
def test_a_url_is_written_as_it_was_read(url: str) -> None:
    assert str(parse_url(f"{url}/")) == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://grid.example.org", "refused: without TLS.*; give the server's https:// URL"),
        ("http://127.evil.example.org", "refused: without TLS"),
        ("http://localhost.evil.example.org", "refused: without TLS"),
        ("grid.example.org", "expected a URL such as"),
        ("ftp://grid.example.org", "expected a URL such as"),
        ("https://", "expected a URL such as"),
        ("https://" + "a" * 64, "expected a URL such as"),
        ("https://grid:port", "invalid"),
        ("https://me@grid.example.org", "without user"),
        ("https://grid.example.org/?a=1", "without user"),
    ],
)
def test_a_url_that_is_none_is_refused(url: str, message: str) -> None:
    with pytest.raises(UsageFault, match=message):
        parse_url(url)


def test_a_missing_bundle_is_named() -> None:
    with pytest.raises(UsageFault, match=r"--ca-file: cannot use /nowhere/ca.pem: No such file"):
        ServerClient(parse_url("https://grid.example.org"), ca_file="/nowhere/ca.pem")
