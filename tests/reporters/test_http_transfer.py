"""Copies between real WebDAV servers, and failures, also of scripted misbehaving servers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware import xrootd
from monitor.testbed.middleware.pki import Authority
from monitor.testbed.middleware.server_process import free_port
from probes.base import InvalidParameters
from probes.grid import CopyOptions, Transferred
from reporters import resolve
from reporters.base import CannotCopy, CredentialUnfit, End, FileTransfer, TookTooLong
from reporters.config import ResourceConfig
from tests.reporters.needs import needs
from tests.reporters.places import private
from tests.reporters.run_security import copied_proxy, copied_security
from tests.reporters.scripted_https import CREATED, Connection, Request, ScriptedServer, scripted_server
from tests.waiting import eventually

MARKER = (
    "Perf Marker\nTimestamp: 1\nStripe Index: 0\nStripe Bytes Transferred: {}\nTotal Stripe Count: 1\nEnd\n"
)


@dataclass
class Sites:
    """Two sites, "one" and "two", each with a directory and a token; the servers are where they are real."""

    root: Path
    options: dict[str, dict[str, Any]]
    servers: dict[str, xrootd.XrootdServer]
    proxy: Path | None = None

    def transfer(self, *, there: dict[str, Any] | None = None, **here: Any) -> FileTransfer:
        """From one to two; *here* are other options of one, *there* of two."""
        ends = []
        for name, options in (("one", here), ("two", there or {})):
            reached = {**self.options[name], **options}
            resource = ResourceConfig(name, name, str(self.root / name), transfer=reached)
            ends.append(End(resource, resolve.shell_of(resource, "main@now")))
        return resolve.transfer_between(*ends)

    def copy(
        self,
        transfer: FileTransfer | None = None,
        *,
        name: str = "file",
        to: str = "copy",
        within_seconds: float = 60.0,
        **how: Any,
    ) -> Transferred:
        paths = str(self.root / "one" / name), str(self.root / "two" / to)
        options = CopyOptions(**how)
        return (transfer or self.transfer()).copy(*paths, options=options, timeout_seconds=within_seconds)

    def token(self, name: str, text: str) -> str:
        return str(private(self.root / f"{name}.token", text))

    def left(self) -> list[str]:
        """Return the files at the target, except copies that arrived."""
        return [path.name for path in (self.root / "two").rglob("*") if path.name.endswith(".part")]


@contextlib.contextmanager
def real_sites() -> Iterator[Sites]:
    needs("xrootd", "xrdcp", "grid-proxy-init", "openssl")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        root = Path(directory)
        security = copied_security(root / "security")
        exported = [xrootd.XrootdSite(name, root / f"{name}-server", root / name) for name in ("one", "two")]
        with xrootd.servers(security, exported) as servers:
            (root / "one" / "file").write_bytes(os.urandom(100_000))
            proxy = copied_proxy(security)
            tokens = {
                name: private(root / f"{name}.token", server.macaroon(proxy))
                for name, server in servers.items()
            }
            options = {name: server.https_transfer(tokens[name]) for name, server in servers.items()}
            yield Sites(root, options, servers, proxy)


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with real_sites() as sites:
        yield sites


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    needs("openssl")
    return copied_security(tmp_path_factory.mktemp("pki")).authority


@pytest.fixture
def scripted(authority: Authority, scripted_pair: tuple[ScriptedServer, ScriptedServer]) -> ScriptedServer:
    """The target's server, which is asked for copies; fresh."""
    server, _ = scripted_pair
    server.requests.clear()
    return server


@pytest.fixture(scope="module")
def scripted_pair(authority: Authority) -> Iterator[tuple[ScriptedServer, ScriptedServer]]:
    def refuse(connection: Connection, _: Request) -> None:
        connection.answer(500)

    with scripted_server(authority, refuse) as one, scripted_server(authority, refuse) as two:
        yield one, two


@pytest.fixture
def played(scripted: ScriptedServer, tmp_path: Path) -> Sites:
    """Two sites with one scripted server."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "file").write_bytes(bytes(1000))
    sites = Sites(tmp_path, {}, {})
    for name in ("one", "two"):
        sites.options[name] = {
            "kind": "http",
            "host": "localhost",
            "port": scripted.port,
            "ca_directory": str(scripted.trust),
            "token_file": sites.token(name, f"secret-of-{name}"),
        }
    return sites


def failure(sites: Sites, transfer: FileTransfer | None = None, **how: Any) -> CannotCopy:
    """Copy and return the error."""
    with pytest.raises(CannotCopy) as raised:
        sites.copy(transfer, **how)
    assert sites.left() == []
    assert raised.value.message.startswith(f"cannot copy one:{sites.root}/one/")
    return raised.value


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_either_server_can_make_the_copy(sites: Sites, mode: str) -> None:
    copy = sites.copy(sites.transfer(mode=mode), to=mode, streams=4, server_checksum=True)
    assert (copy.bytes, copy.retries) == (100_000, 0)
    assert copy.streams == (4 if mode == "pull" else 1)
    assert (sites.root / "two" / mode).read_bytes() == (sites.root / "one" / "file").read_bytes()


def test_checksums_that_differ_fail_the_copy(sites: Sites) -> None:
    """Change a file after the server has cached its checksum, with the same modification time."""
    file = sites.root / "one" / "rotten"
    file.write_bytes(os.urandom(1000))
    sites.copy(name="rotten", server_checksum=True)
    before = file.stat()
    with file.open("r+b") as opened:
        opened.write(b"\0\0\0\0")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    error = failure(sites, name="rotten", server_checksum=True)
    assert "the adler32 checksums of the servers differ" in error.message
    assert error.resource == "two"


@pytest.mark.parametrize("mode", ["pull", "push"])
@pytest.mark.parametrize("whose", ["one", "two"])
def test_an_invalid_token_is_reported_for_the_right_end(sites: Sites, mode: str, whose: str) -> None:
    unfit: dict[str, Any] = {"token_file": sites.token("unfit", "MDAxM2xvY2F0aW9uIFNJVEUxCg")}
    transfer = (
        sites.transfer(mode=mode, **unfit) if whose == "one" else sites.transfer(mode=mode, there=unfit)
    )
    error = failure(sites, transfer)
    assert f"no token that is valid at {whose}: " in error.message
    assert error.resource == whose


def test_a_token_for_another_directory_is_refused(sites: Sites) -> None:
    assert sites.proxy is not None
    (sites.root / "two" / "public").mkdir(exist_ok=True)
    macaroon = sites.servers["two"].macaroon(sites.proxy, path="/public")
    transfer = sites.transfer(there={"token_file": sites.token("public", macaroon)})
    sites.copy(transfer, to="public/copy")
    assert "no token that is valid at two: HTTP status 40" in failure(sites, transfer).message


def test_a_macaroon_that_expires_before_the_end_of_the_run_is_reported(sites: Sites) -> None:
    assert sites.proxy is not None
    macaroon = sites.servers["two"].macaroon(sites.proxy, minutes=5)
    transfer = sites.transfer(there={"token_file": sites.token("short", macaroon)})
    of_one, of_two = transfer.credentials()
    of_one.check(needed_seconds=540)
    with pytest.raises(
        CredentialUnfit, match=r"token .*short.token expires in [45] min, the run needs about 9 min"
    ):
        of_two.check(needed_seconds=540)


def test_a_missing_token_is_reported_before_any_request(played: Sites, scripted: ScriptedServer) -> None:
    with pytest.raises(CredentialUnfit, match=r"no token: .*/none: No such file or directory"):
        played.copy(played.transfer(token_file=str(played.root / "none")))
    assert scripted.requests == []


def test_a_proxy_authenticates_without_a_token(sites: Sites) -> None:
    with_proxy = {"token_file": "", "proxy_file": str(sites.proxy)}
    sites.copy(sites.transfer(there=with_proxy), to="by-proxy")
    assert (sites.root / "two" / "by-proxy").stat().st_size == 100_000


@pytest.mark.parametrize("away", ["one", "two"])
def test_a_server_that_is_down_is_named(sites: Sites, away: str) -> None:
    port = free_port("localhost")
    transfer = sites.transfer(port=port) if away == "one" else sites.transfer(there={"port": port})
    error = failure(sites, transfer)
    refused = f"cannot connect to localhost:{port}: Connection refused"
    assert error.message.endswith(refused if away == "two" else "failure: Couldn't connect to server")
    assert error.resource == away


def test_an_invalid_host_is_named(sites: Sites) -> None:
    error = failure(sites, sites.transfer(there={"host": "nowhere.invalid"}))
    assert "cannot connect to nowhere.invalid:" in error.message
    assert error.resource == "two"


def test_an_untrusted_server_gets_no_request(played: Sites, scripted: ScriptedServer, tmp_path: Path) -> None:
    for trusted in ({"ca_directory": str(tmp_path)}, {"ca_directory": ""}):
        error = failure(played, played.transfer(there=trusted))
        assert "its certificate is not trusted: " in error.message
        assert error.resource == "two"
    assert scripted.requests == []


def test_a_certificate_for_another_host_is_not_trusted(played: Sites, scripted: ScriptedServer) -> None:
    error = failure(played, played.transfer(there={"host": "127.0.0.1"}))
    assert "its certificate is not trusted: IP address mismatch" in error.message
    assert scripted.requests == []


def test_authorities_may_be_a_file_or_a_directory(
    played: Sites, scripted: ScriptedServer, authority: Authority
) -> None:
    scripted.script = lambda connection, _: connection.say("failure: I was asked")
    trusted = {"ca_directory": "", "ca_file": str(authority.identity.certificate)}
    assert failure(played, played.transfer(there=trusted)).message.endswith("failure: I was asked")
    missing = {"ca_directory": "", "ca_file": str(played.root / "none")}
    assert "none: No such file" in failure(played, played.transfer(there=missing)).message


def test_a_server_killed_during_a_copy_fails_it(played: Sites, scripted: ScriptedServer) -> None:
    """End the connection in the middle of the response, as for a killed process."""

    def die(connection: Connection, _: Request) -> None:
        connection.send(CREATED)
        connection.chunk(MARKER.format(400).encode())

    scripted.script = die
    error = failure(played)
    assert error.message.endswith("the connection ended in the middle of the answer")
    assert error.resource == "two"


def test_a_source_killed_during_a_copy_is_at_fault() -> None:
    with real_sites() as sites:
        with (sites.root / "one" / "large").open("wb") as file:
            file.truncate(2_000_000_000)

        def kill() -> None:
            if eventually(lambda: any(path.stat().st_size for path in (sites.root / "two").glob(".*.part"))):
                os.kill(sites.servers["one"].pid, signal.SIGKILL)

        with running(kill):
            error = failure(sites, name="large")
        assert error.resource == "one"


@contextlib.contextmanager
def running(action: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=action)
    thread.start()
    yield
    thread.join()


def test_the_wait_for_a_stopped_server_is_limited(sites: Sites) -> None:
    pid = sites.servers["two"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(
            TookTooLong, match=r"the copy from one to two ran longer than 0.3 s and was stopped"
        ):
            sites.copy(within_seconds=0.3)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert sites.left() == []


def test_a_full_disk_is_the_targets_failure(sites: Sites, small_disk: Path) -> None:
    (sites.root / "one" / "large").write_bytes(bytes(30_000_000))
    for mode in ("pull", "push"):
        error = failure(sites, sites.transfer(mode=mode), name="large", to="small/copy")
        assert ": No space left on device: failure: " in error.message
        assert error.resource == "two"
    assert list(small_disk.iterdir()) == []


@pytest.fixture
def small_disk(sites: Sites) -> Iterator[Path]:
    directory = sites.root / "two" / "small"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small tmpfs needs root")
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


def test_each_server_gets_the_tokens_that_it_needs_and_the_label_of_the_run(
    played: Sites, scripted: ScriptedServer
) -> None:
    scripted.script = lambda connection, _: connection.say("failure: enough")
    failure(played, played.transfer(mode="push"), streams=3)
    failure(played, streams=3)
    pushed, pulled = (request.headers for request in scripted.requests)
    assert (pushed["Authorization"], pushed["TransferHeaderAuthorization"]) == (
        "Bearer secret-of-one",
        "Bearer secret-of-two",
    )
    assert pushed["Destination"].startswith(f"https://localhost:{scripted.port}{played.root}/two/.copy.")
    assert (pulled["Authorization"], pulled["TransferHeaderAuthorization"]) == (
        "Bearer secret-of-two",
        "Bearer secret-of-one",
    )
    assert pulled["Source"] == f"https://localhost:{scripted.port}{played.root}/one/file"
    assert (pulled["X-Number-Of-Streams"], pulled["Overwrite"], pulled["User-Agent"]) == (
        "3",
        "T",
        "gridcast main@now",
    )


@pytest.mark.parametrize(
    ("status", "words", "resource"),
    [
        (401, "no token that is valid at two: HTTP status 401 from two: said", "two"),
        (403, "no token that is valid at two: HTTP status 403 from two: said", "two"),
        (404, "no such file at two: HTTP status 404 from two: said", "two"),
        (405, "two does not support third-party copies: HTTP status 405 from two: said", "two"),
        (501, "two does not support third-party copies: HTTP status 501 from two: said", "two"),
        (502, "no answer from one: HTTP status 502 from two: said", "one"),
        (503, "two is unavailable: HTTP status 503 from two: said", "two"),
        (504, "no answer from one: HTTP status 504 from two: said", "one"),
        (507, "no space left at two: HTTP status 507 from two: said", "two"),
        (418, "HTTP status 418 from two: said", "two"),
    ],
)
def test_a_status_is_explained_with_the_end_at_fault(
    played: Sites, scripted: ScriptedServer, status: int, words: str, resource: str
) -> None:
    scripted.script = lambda connection, _: connection.answer(status, b"said\nmore\n")
    error = failure(played)
    assert error.message.endswith(words)
    assert (error.resource, error.stderr_tail) == (resource, "said\nmore\n")


@pytest.mark.parametrize(
    ("body", "words", "resource"),
    [
        (
            "failure: Remote side failed with status code 403",
            "no token that is valid at one: failure: ",
            "one",
        ),
        ("failure: Remote side failed with status code 507", "no space left at one: failure: ", "one"),
        ("failure: No space left on device", "failure: No space left on device", "two"),
        ("Failed: Connection timed out", "Failed: Connection timed out", "one"),
        ("aborted by the operator", "aborted by the operator", "two"),
        ("success: Created\nfailure: not at all", "failure: not at all", "two"),
    ],
)
def test_the_result_is_in_the_body_not_in_the_status(
    played: Sites, scripted: ScriptedServer, body: str, words: str, resource: str
) -> None:
    scripted.script = lambda connection, _: connection.say(MARKER.format(10), body)
    error = failure(played)
    assert f": {words}" in error.message
    assert error.resource == resource


def test_a_token_repeated_by_a_server_is_not_reported(played: Sites, scripted: ScriptedServer) -> None:
    def repeat(connection: Connection, request: Request) -> None:
        connection.say(*request.headers.values(), f"failure: {request.headers['Authorization']}")

    scripted.script = repeat
    error = failure(played)
    assert error.message.endswith("failure: Bearer [secret]")
    assert [request.headers["Authorization"] for request in scripted.requests] == ["Bearer secret-of-two"]
    assert "secret-of" not in error.stderr_tail


@pytest.mark.parametrize(
    "body", [b"", b"\xff\x00\xfe", b"<html>Welcome</html>", MARKER.format(1000).encode()]
)
def test_a_response_without_a_result_is_a_failure(
    played: Sites, scripted: ScriptedServer, body: bytes
) -> None:
    def answer(connection: Connection, _: Request) -> None:
        connection.send(CREATED)
        if body:
            connection.chunk(body)
        connection.chunk(b"")

    scripted.script = answer
    error = failure(played)
    assert "two does not report the result: " in error.message
    assert error.resource == "two"


def test_an_empty_success_response_is_accepted(played: Sites, scripted: ScriptedServer) -> None:
    def put(connection: Connection, request: Request) -> None:
        Path(request.path).write_bytes(bytes(1000))
        connection.answer(204)

    scripted.script = put
    assert played.copy().bytes == 1000


def test_an_endless_body_is_read_to_the_limit_and_discarded(played: Sites, scripted: ScriptedServer) -> None:
    def talk(connection: Connection, _: Request) -> None:
        connection.send(CREATED)
        while True:
            connection.chunk(b"nonsense without end" * 5000)

    scripted.script = talk
    with pytest.raises(TookTooLong):
        played.copy(within_seconds=0.5)


def test_an_endless_refusal_is_not_read_to_its_end(played: Sites, scripted: ScriptedServer) -> None:
    def talk(connection: Connection, _: Request) -> None:
        connection.send(b"HTTP/1.1 500 Error\r\n\r\n")
        while True:
            connection.send(b"nonsense\n" * 5000)

    scripted.script = talk
    assert failure(played).message.endswith("HTTP status 500 from two: nonsense")


@pytest.mark.parametrize("slow", ["head", "markers"])
def test_the_limit_holds_for_a_slow_server(played: Sites, scripted: ScriptedServer, slow: str) -> None:
    is_drained = threading.Event()

    def drip(connection: Connection, _: Request) -> None:
        if slow == "markers":
            connection.send(CREATED)
        for number in range(3000):
            time.sleep(0.02)  # a server that is slow, but not silent
            if slow == "head":
                connection.send(b"H")
            else:
                connection.chunk(MARKER.format(number).encode())
        is_drained.set()

    scripted.script = drip
    with pytest.raises(TookTooLong):
        played.copy(within_seconds=0.4)
    assert not is_drained.is_set()


def test_a_silent_copy_is_stalled(played: Sites, scripted: ScriptedServer) -> None:
    def fall_silent(connection: Connection, _: Request) -> None:
        connection.send(CREATED)
        connection.chunk(MARKER.format(400).encode())
        connection.wait_for_its_end()

    scripted.script = fall_silent
    error = failure(played, played.transfer(stall_seconds=0.2))
    assert error.message.endswith("no data for 0.2 s")
    assert error.resource == "two"


def test_a_copy_without_progress_is_stalled_at_the_other_end(played: Sites, scripted: ScriptedServer) -> None:
    def stand_still(connection: Connection, _: Request) -> None:
        connection.send(CREATED)
        while True:
            connection.chunk(MARKER.format(400).encode())
            time.sleep(0.02)  # markers come at intervals

    scripted.script = stand_still
    error = failure(played, played.transfer(stall_seconds=0.2))
    assert error.message.endswith("stalled for 0.2 s at 400 of 1000 bytes")
    assert error.resource == "one"


def test_a_response_that_is_no_http_is_reported(played: Sites, scripted: ScriptedServer) -> None:
    scripted.script = lambda connection, _: connection.send(b"SSH-2.0-OpenSSH_9.2\r\n")
    assert "the connection was lost: SSH-2.0" in failure(played).message


def test_a_redirect_within_the_server_is_followed(played: Sites, scripted: ScriptedServer) -> None:
    def move(connection: Connection, request: Request) -> None:
        if request.path.startswith("/moved"):
            connection.say("failure: here")
        else:
            connection.answer(307, Location=f"/moved{request.path}?key=1")

    scripted.script = move
    assert failure(played).message.endswith("failure: here")
    assert scripted.requests[1].path.startswith(f"/moved{played.root}/two/.copy.")
    assert scripted.requests[1].headers["Authorization"] == "Bearer secret-of-two"


def test_a_redirect_to_another_server_gets_no_token(
    played: Sites, scripted: ScriptedServer, scripted_pair: tuple[ScriptedServer, ScriptedServer]
) -> None:
    _, other = scripted_pair
    locations = [
        f"https://localhost:{other.port}/stolen",
        f"https://127.0.0.1:{scripted.port}/stolen",
        f"http://localhost:{scripted.port}/stolen",
        f"https://localhost:{scripted.port}@evil.example/stolen",
        f"//localhost:{other.port}/stolen",
        "https://localhost:no/stolen",
        "",
    ]
    for location in locations:
        scripted.script = lambda connection, _, to=location: connection.answer(307, Location=to)  # type: ignore[misc]
        error = failure(played)
        assert "no token is sent to another server" in error.message or "more than 5 times" in error.message
    assert other.requests == []


def test_a_redirect_loop_ends(played: Sites, scripted: ScriptedServer) -> None:
    scripted.script = lambda connection, _: connection.answer(302, Location="/again")
    assert failure(played).message.endswith("redirected more than 5 times")


def test_a_server_without_checksums_is_named(played: Sites, scripted: ScriptedServer) -> None:
    def answer(connection: Connection, request: Request) -> None:
        if request.method == "COPY":
            connection.say("success: Created")
        else:
            connection.answer(200, Digest="md5=abc")

    scripted.script = answer
    error = failure(played, server_checksum=True)
    expected = f"one returns no adler32 checksum of {played.root}/one/file: HTTP status 200"
    assert error.message.endswith(expected)
    assert error.resource == "one"


def test_invalid_options_are_refused(played: Sites) -> None:
    with pytest.raises(
        InvalidParameters, match=r"resource two: transfer 'http': mode: expected pull or push, got 'pul'"
    ):
        played.transfer(mode="pul")
    with pytest.raises(InvalidParameters, match=r"stall_seconds: expected a number > 0, got 0"):
        played.transfer(there={"stall_seconds": 0})
