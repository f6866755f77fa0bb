"""Copies between real XRootD servers and their failures."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware import xrootd
from monitor.testbed.middleware.gsi import Security
from monitor.testbed.middleware.server_process import free_port
from probes.base import InvalidParameters, ProbeFailed, in_parallel
from probes.grid import CopyOptions, Transferred
from reporters import resolve
from reporters.base import CannotCopy, CredentialUnfit, End, FileTransfer, TookTooLong
from reporters.config import ResourceConfig
from reporters.transfers.xrootd import parse_failure
from tests.reporters.needs import needs
from tests.reporters.run_security import client_path, copied_security, short_proxy
from tests.reporters.small_file_system import small_file_system
from tests.waiting import eventually

DATA = Path(__file__).parent / "data" / "xrdcp"
MANY_BYTES = 2_000_000_000  # of a file with nothing in it; for some seconds of copying


@dataclass
class Sites:
    """Servers of "one" and "two" and a *proxy* valid at both; their user has no access to "closed"."""

    root: Path
    security: Security
    servers: dict[str, xrootd.XrootdServer]
    proxy: Path

    def transfer(self, *, there: dict[str, Any] | None = None, **here: Any) -> FileTransfer:
        """From one to two; *here* are other options of one, *there* of two."""
        ends = []
        for name, options in (("one", here), ("two", there or {})):
            path = client_path(self.security)
            reached = {**self.servers[name].transfer(self.proxy), "path": path, **options}
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

    def left(self) -> list[str]:
        """Return the files at the target, except copies that arrived."""
        return [path.name for path in (self.root / "two").rglob("*") if path.name.endswith(".part")]


@contextlib.contextmanager
def two_sites() -> Iterator[Sites]:
    needs("xrootd", "xrdcp", "grid-proxy-init", "openssl")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        root = Path(directory)
        security = copied_security(root / "security")
        sites = [
            xrootd.XrootdSite(name, root / f"{name}-server", root / name, ["/closed"])
            for name in ("one", "two")
        ]
        with short_proxy(security) as proxy, xrootd.servers(security, sites) as servers:
            for site in sites:
                (site.exported / "closed").mkdir()
                for name in ("file", "closed/file"):
                    (site.exported / name).write_bytes(os.urandom(100_000))
            yield Sites(root, security, servers, proxy)


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with two_sites() as sites:
        yield sites


def with_streams_and_checksums(sites: Sites) -> Transferred:
    return sites.copy(to="whole", streams=4, server_checksum=True)


def with_a_byte_lost_at_the_source(sites: Sites) -> Transferred:
    """Change a file after the server has cached its checksum, with the same modification time."""
    file = sites.root / "one" / "rotten"
    shutil.copy(sites.root / "one" / "file", file)
    server = sites.servers["one"]
    env = {
        **os.environ,
        "X509_USER_PROXY": str(sites.proxy),
        "X509_CERT_DIR": str(sites.security.authority.trust),
    }
    argv = ["xrdfs", f"localhost:{server.port}", "query", "checksum", "/rotten"]
    subprocess.run(argv, env=env, check=True, capture_output=True, timeout=60)
    before = file.stat()
    with file.open("r+b") as opened:
        opened.write(b"\0\0\0\0")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return sites.copy(name="rotten", to="rotten", server_checksum=True)


def without_a_proxy(sites: Sites) -> Transferred:
    return sites.copy(sites.transfer(there={"proxy_file": str(sites.root / "none")}))


def with_an_expired_proxy(sites: Sites) -> Transferred:
    return sites.copy(sites.transfer(there={"proxy_file": str(sites.security.expired_proxy())}))


def from_a_closed_directory(sites: Sites) -> Transferred:
    return sites.copy(name="closed/file")


def to_a_closed_directory(sites: Sites) -> Transferred:
    return sites.copy(to="closed/copy")


SLOW: tuple[Callable[[Sites], Transferred], ...] = (
    with_streams_and_checksums,
    with_a_byte_lost_at_the_source,
    without_a_proxy,
    with_an_expired_proxy,
    from_a_closed_directory,
    to_a_closed_directory,
)


@pytest.fixture(scope="module")
def outcomes(sites: Sites) -> dict[str, Transferred | ProbeFailed]:
    """The error of each of SLOW, run in parallel because xrdcp mostly waits."""

    def outcome(copy: Callable[[Sites], Transferred]) -> Transferred | ProbeFailed:
        try:
            return copy(sites)
        except ProbeFailed as error:
            return error

    return dict(zip((copy.__name__ for copy in SLOW), in_parallel(outcome, SLOW), strict=True))


Outcomes = dict[str, "Transferred | ProbeFailed"]


def failure(outcomes: Outcomes, copy: Callable[[Sites], Transferred]) -> ProbeFailed:
    failed = outcomes[copy.__name__]
    assert isinstance(failed, CannotCopy), failed
    return failed


def test_the_servers_open_streams_and_compare_checksums(outcomes: Outcomes, sites: Sites) -> None:
    copy = outcomes["with_streams_and_checksums"]
    assert isinstance(copy, Transferred)
    assert (copy.bytes, copy.streams, copy.retries) == (100_000, 4, 0)
    assert (sites.root / "two" / "whole").read_bytes() == (sites.root / "one" / "file").read_bytes()
    # Streams beside the first one are bound to it; a file as small as this may have arrived before all are.
    log = sites.servers["one"].log
    assert eventually(lambda: " bound " in log.read_text())


def test_checksums_that_differ_fail_the_copy(outcomes: Outcomes) -> None:
    error = failure(outcomes, with_a_byte_lost_at_the_source)
    assert error.message.endswith("the adler32 checksums of the servers differ: CheckSum error")
    assert error.exit_status == 53


@pytest.mark.parametrize("copy", [without_a_proxy, with_an_expired_proxy])
def test_an_invalid_proxy_is_refused(outcomes: Outcomes, copy: Callable[[Sites], Transferred]) -> None:
    error = failure(outcomes, copy)
    assert "login refused: no proxy that is valid there, or an untrusted host: Auth failed" in error.message
    assert (error.resource, error.exit_status) == ("two", 52)


@pytest.mark.parametrize(
    ("copy", "resource"), [(from_a_closed_directory, "one"), (to_a_closed_directory, "two")]
)
def test_denied_permission_is_reported_for_the_right_end(
    outcomes: Outcomes, copy: Callable[[Sites], Transferred], resource: str
) -> None:
    error = failure(outcomes, copy)
    assert "permission denied" in error.message
    assert (error.resource, error.exit_status) == (resource, 54)


def test_failed_copies_leave_no_file(outcomes: Outcomes, sites: Sites) -> None:
    assert len(outcomes) == len(SLOW)
    assert sites.left() == []


def test_the_proxy_is_checked_before_a_run(sites: Sites) -> None:
    (credential,) = sites.transfer(proxy_file=str(sites.root / "none")).credentials()
    credential.check(needed_seconds=60)
    (missing,) = sites.transfer(there={"proxy_file": str(sites.root / "none")}).credentials()
    with pytest.raises(CredentialUnfit, match=r"no valid proxy: .*none: No such file or directory"):
        missing.check(needed_seconds=60)


@pytest.mark.parametrize("away", ["one", "two"])
def test_a_server_that_is_down_is_named_at_once(sites: Sites, away: str) -> None:
    port = free_port("localhost")
    transfer = sites.transfer(port=port) if away == "one" else sites.transfer(there={"port": port})
    with pytest.raises(
        CannotCopy, match=f"cannot connect to localhost:{port}: Connection refused$"
    ) as raised:
        sites.copy(transfer)
    assert raised.value.resource == away


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"host": "a/b"}, r"one: host: expected a name or an address for a URL, got 'a/b'"),
        ({"host": "-x"}, r"one: host: expected a name or an address for a URL, got '-x'"),
        ({"port": 70_000}, r"resource one: transfer 'xrootd': port: 70000 is outside 1 to 65535"),
        ({"directory": "data"}, r"resource one: directory: expected an absolute path, got 'data'"),
    ],
)
def test_options_without_a_valid_address_are_refused(
    sites: Sites, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidParameters, match=message):
        sites.transfer(**options)


def test_a_file_that_is_not_exported_is_not_requested(sites: Sites) -> None:
    elsewhere = str(sites.root / "one" / "closed")
    with pytest.raises(CannotCopy, match=r"/one/file is not in the exported directory .*/one/closed"):
        sites.copy(sites.transfer(directory=elsewhere))


@pytest.mark.parametrize("name", ["a?b", "a&tpc.src=c", "a\nb"])
def test_a_path_with_parameters_is_refused(sites: Sites, name: str) -> None:
    (sites.root / "one" / name).touch()
    with pytest.raises(CannotCopy, match=r"XRootD supports no \? or & in a path"):
        sites.copy(name=name)


@pytest.mark.nightly
def test_a_full_disk_is_the_targets_failure(sites: Sites, small_disk: Path) -> None:
    (sites.root / "one" / "large").write_bytes(bytes(30_000_000))
    # Sometimes no error is reported, and only the size differs.
    with pytest.raises(
        CannotCopy, match=r"no space left on device$|\d+ of 30000000 bytes arrived$"
    ) as raised:
        sites.copy(name="large", to="small/copy")
    assert raised.value.resource == "two"
    assert list(small_disk.iterdir()) == []


@pytest.fixture
def small_disk(sites: Sites) -> Iterator[Path]:
    directory = sites.root / "two" / "small"
    directory.mkdir()
    with small_file_system(directory, 1):
        yield directory


def when_it_moves(sites: Sites, action: Callable[[], None]) -> threading.Thread:
    """Do *action* as soon as bytes have arrived at the target."""

    def arriving() -> bool:
        return any(path.stat().st_size for path in (sites.root / "two").glob(".*.part"))

    def watch() -> None:
        if eventually(arriving, within_seconds=60):
            action()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.nightly
def test_a_source_killed_during_a_copy_fails_it() -> None:
    with two_sites() as sites:
        with (sites.root / "one" / "large").open("wb") as file:
            file.truncate(MANY_BYTES)
        killing = when_it_moves(sites, lambda: os.kill(sites.servers["one"].pid, signal.SIGKILL))
        # As it comes: the target lost it, or found it gone when it asked for more.
        with pytest.raises(CannotCopy, match=r"Connection error|connection reset by peer") as raised:
            sites.copy(name="large", within_seconds=600.0)
        killing.join()
        assert raised.value.resource == "one"
        assert sites.left() == []


def test_the_wait_for_a_stopped_server_is_limited(sites: Sites) -> None:
    pid = sites.servers["two"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(TookTooLong, match=r"xrdcp from one to two ran longer than 0.5 s and was stopped"):
            sites.copy(within_seconds=0.5)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert sites.left() == []


@pytest.mark.parametrize(
    ("file", "message", "side"),
    [
        (
            "not-let-in",
            "login refused: no proxy that is valid there, or an untrusted host: "
            "Auth failed: No protocols left to try",
            "destination",
        ),
        (
            "missing-at-source",
            "[3011] Unable to open /missing; no such file or directory",
            "source",
        ),
        (
            "no-delegation",
            "permission denied: [3010] Unable to open /d/g1k; no delegated credentials for tpc",
            "destination",
        ),
        ("full", "Local error: no space left on device", "destination"),
        ("source-killed", "cannot connect: Connection error", "source"),
        ("target-killed", "Socket error: connection reset by peer", None),
        ("checksum", "the adler32 checksums of the servers differ: CheckSum error", None),
    ],
)
def test_an_error_of_xrdcp_is_explained_with_the_end_at_fault(
    file: str, message: str, side: str | None
) -> None:
    assert parse_failure((DATA / f"{file}.txt").read_text()) == (message, side)


def test_other_output_of_xrdcp_is_no_failure() -> None:
    assert parse_failure("adler32: 2490dfc5 root://localhost:15091/f 100000000\n") is None
