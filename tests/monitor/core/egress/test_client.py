"""A call that goes out ends within its bounds, whatever the server, DNS or a redirect does."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from monitor.core.egress.addresses import InternalAddress
from monitor.core.egress.bounds import FEED, PROVIDER, TRACES, WEBHOOK, EgressBounds
from monitor.core.egress.client import EgressClient
from monitor.core.egress.errors import AnswerTooLarge, TargetRefused, Unanswered
from monitor.core.egress.target import EgressTarget, parse_target
from tests.monitor.analysis.webhooks.test_post import tls_receiver
from tests.reporters.remote.tunnel import tunnel

Script = Callable[[socket.socket, threading.Event], None]
SHORT = replace(PROVIDER, seconds=0.3)


@contextmanager
def scripted(script: Script) -> Iterator[EgressTarget]:
    """Run a server that does *script* on each connection, until the event is set."""
    over, threads = threading.Event(), []

    def serve(listener: socket.socket) -> None:
        while not over.is_set():
            channel, _ = listener.accept()
            threads.append(threading.Thread(target=handle, args=[channel]))
            threads[-1].start()

    def handle(channel: socket.socket) -> None:
        with channel:
            try:
                script(channel, over)
            except OSError:  # the client has gone
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=serve, args=[listener])
        accepting.start()
        try:
            yield parse_target(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        finally:
            over.set()
            socket.create_connection(listener.getsockname()).close()
            for thread in (accepting, *threads):
                thread.join()


def hang(_: socket.socket, over: threading.Event) -> None:
    over.wait()


def trickle_after(beginning: bytes) -> Script:
    """Every byte would start the timeout of a socket again."""

    def script(channel: socket.socket, over: threading.Event) -> None:
        channel.sendall(beginning)
        while not over.wait(0.02):
            channel.sendall(b"x")

    return script


def flood(channel: socket.socket, over: threading.Event) -> None:
    channel.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.is_set():
        channel.sendall(b"x" * 65536)


def say(answer: bytes) -> Script:
    def script(channel: socket.socket, _over: threading.Event) -> None:
        channel.recv(65536)
        channel.sendall(answer)

    return script


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "script",
    [
        hang,
        trickle_after(b""),
        trickle_after(HEAD + b"X-Long: "),
        trickle_after(HEAD + b"Content-Length: 100000\r\n\r\n"),
        trickle_after(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n"),
    ],
    ids=["hangs", "status line", "head", "body", "chunk"],
)
def test_a_server_that_hangs_or_trickles_ends_at_the_deadline(script: Script) -> None:
    with scripted(script) as target, pytest.raises(Unanswered, match=r"no answer within 0\.3 s"):
        EgressClient(SHORT).send("GET", target, {})


def test_a_handshake_that_trickles_ends_at_the_deadline() -> None:
    record = b"\x16\x03\x03\x40\x00"  # begins a handshake message of 16 KiB
    with (
        scripted(trickle_after(record)) as target,
        pytest.raises(Unanswered, match=r"no answer within 0\.3 s"),
    ):
        EgressClient(SHORT).send("GET", replace(target, scheme="https"), {})


def test_a_name_whose_lookup_hangs_ends_at_the_deadline() -> None:
    over = threading.Event()

    def dns(_host: str, _port: int) -> Sequence[str]:
        over.wait()
        return ["127.0.0.1"]

    try:
        with pytest.raises(Unanswered, match=r"no answer within 0\.3 s"):
            EgressClient(SHORT, resolve=dns).send("GET", parse_target("http://slow.example.org/"), {})
    finally:
        over.set()


@pytest.mark.parametrize("length", [b"", b"Content-Length: 1048577\r\n"], ids=["unknown", "announced"])
def test_a_body_beyond_the_bounds_is_not_read(length: bytes) -> None:
    with (
        scripted(flood if not length else say(HEAD + length + b"\r\n")) as target,
        pytest.raises(AnswerTooLarge, match="more than 1,048,576 bytes"),
    ):
        EgressClient(PROVIDER).send("GET", target, {})


def test_a_body_that_ends_early_is_no_answer() -> None:
    with (
        scripted(say(HEAD + b"Content-Length: 10\r\n\r\nshort")) as target,
        pytest.raises(Unanswered, match="5 bytes early"),
    ):
        EgressClient(PROVIDER).send("GET", target, {})


@pytest.mark.parametrize("answer", [b"", b"\xff\xfe nonsense\r\n\r\n", b"HTTP/1.1 two hundred\r\n\r\n"])
def test_what_is_no_http_is_no_answer(answer: bytes) -> None:
    with scripted(say(answer)) as target, pytest.raises(Unanswered, match="127"):
        EgressClient(PROVIDER).send("GET", target, {})


@dataclass
class Places:
    """A web server whose paths answer with a redirect to *redirects* or, by default, with 200."""

    origin: str
    redirects: dict[str, str] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)


@pytest.fixture
def places() -> Iterator[Places]:
    served = Places("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.seen.append(self.path)
            location = served.redirects.get(self.path)
            self.send_response(302 if location else 200)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"here")

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        served.origin = f"http://127.0.0.1:{server.server_port}"
        yield served
        server.shutdown()
        thread.join()


def get(places: Places, bounds: EgressBounds, path: str = "/a", **options: object) -> bytes:
    client = EgressClient(bounds, **options)  # type: ignore[arg-type]
    return client.send("GET", parse_target(f"{places.origin}{path}"), {}).body


@pytest.mark.parametrize("bounds", [FEED, PROVIDER])
def test_three_redirects_at_one_server_are_followed_and_a_fourth_is_not(
    places: Places, bounds: EgressBounds
) -> None:
    places.redirects = {"/a": "b", "/b": f"{places.origin}/c", "/c": "/d"}
    assert get(places, bounds) == b"here"
    places.redirects["/d"] = "/e"
    with pytest.raises(TargetRefused, match="redirects more than 3 times"):
        get(places, bounds)
    assert "/e" not in places.seen


def test_the_provider_may_not_redirect_to_another_host(places: Places) -> None:
    places.redirects = {"/a": f"{places.origin.replace('127.0.0.1', 'localhost')}/b"}
    with pytest.raises(TargetRefused, match="which is another server"):
        get(places, PROVIDER)
    assert places.seen == ["/a"]


def test_a_feed_may_not_redirect_to_an_internal_host_that_was_not_named(places: Places) -> None:
    other = places.origin.replace("127.0.0.1", "localhost")
    places.redirects = {"/a": f"{other}/b"}
    with pytest.raises(InternalAddress, match="localhost has the loopback address"):
        get(places, FEED, internal_hosts={"127.0.0.1"})
    assert places.seen == ["/a"]
    assert get(places, FEED, internal_hosts={"127.0.0.1", "localhost"}) == b"here"


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://example.org/a", "http://[", "//a:b@c/"])
def test_a_redirect_leads_to_http_alone(places: Places, location: str) -> None:
    places.redirects = {"/a": location}
    with pytest.raises(TargetRefused):
        get(places, FEED)


def test_a_redirect_may_not_leave_https() -> None:
    target = parse_target("https://feeds.example.org/a")
    with pytest.raises(TargetRefused, match="not encrypted"):
        target.redirected("http://feeds.example.org/a")
    assert target.redirected("//other.example.org/b").origin == "https://other.example.org"


@pytest.mark.parametrize("bounds", [WEBHOOK, TRACES, PROVIDER])
def test_a_post_is_not_redirected(places: Places, bounds: EgressBounds) -> None:
    places.redirects = {"/a": "/b"}
    answer = EgressClient(bounds).send("POST", parse_target(f"{places.origin}/a"), {}, b"{}")
    assert (answer.status, answer.headers["location"], places.seen) == (302, "/b", ["/a"])


def test_the_proxy_of_the_environment_is_asked_except_by_webhooks(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", places.origin.replace("http://", "http://ada:secret@"))
    monkeypatch.delenv("no_proxy", raising=False)
    target = parse_target("http://idp.example.org/keys")
    assert EgressClient(PROVIDER).send("GET", target, {}).body == b"here"
    assert places.seen == ["http://idp.example.org/keys"]
    with pytest.raises(Unanswered, match="unknown here"):
        EgressClient(WEBHOOK, resolve=_no_names).send("POST", target, {}, b"")
    monkeypatch.setenv("no_proxy", "idp.example.org")
    with pytest.raises(Unanswered, match="unknown here"):
        EgressClient(PROVIDER, resolve=_no_names).send("GET", target, {})


def _no_names(_host: str, _port: int) -> Sequence[str]:
    raise OSError("unknown here")


def test_a_proxy_that_refuses_a_tunnel_is_said_so(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", places.origin)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(Unanswered, match=r"the proxy refuses to connect to https://idp\.example\.org: 501"):
        EgressClient(PROVIDER).send("GET", parse_target("https://idp.example.org/keys"), {})


def test_a_server_is_verified_by_its_name_through_a_tunnel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = f"Basic {base64.b64encode(b'ada:p@ss').decode()}"
    with tls_receiver(tmp_path, "localhost") as (receiver, context), tunnel(credentials) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.replace("http://", "http://ada:p%40ss@"))
        monkeypatch.delenv("no_proxy", raising=False)
        port = receiver.server_address[1]
        client = EgressClient(TRACES, context=context)
        named, numbered = (parse_target(f"https://{host}:{port}/") for host in ("localhost", "127.0.0.1"))
        assert client.send("POST", named, {}, b"{}").status == 202
        with pytest.raises(Unanswered, match="certificate verify failed"):
            client.send("POST", numbered, {}, b"{}")
    assert proxy.requests == [f"localhost:{port}", f"127.0.0.1:{port}"]
    assert set(proxy.credentials) == {credentials}
