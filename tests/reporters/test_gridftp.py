"""The gridftp transfer against real servers: its requests, and every fault that can be provoked."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware import gridftp
from monitor.testbed.middleware.gsi import Security
from probes.base import InvalidParameters, ProbeFailed
from probes.grid import CopyOptions, Transferred
from reporters import resolve
from reporters.base import (
    CannotConnect,
    CannotCopy,
    ConnectionLost,
    CredentialUnfit,
    End,
    FileTransfer,
    TookTooLong,
)
from reporters.config import ResourceConfig
from reporters.transfers.gridftp import CopyLog, Transfer, explained, parse
from tests.reporters.needs import needs
from tests.reporters.run_security import client_path, copied_security, short_proxy
from tests.reporters.ssh_sites import processes_naming
from tests.waiting import eventually

DATA = Path(__file__).parent / "data" / "globus"
# A server with so small a block takes a second for a few megabytes, however fast the machine is.
SLOW = ("-blocksize", "64")
EVERYTHING = ("-log-level", "ALL")


@dataclass
class Grid:
    """The servers by name: "one" and "two", and "slow" with the files of one."""

    root: Path
    security: Security
    servers: dict[str, gridftp.GridFtpServer]
    proxy: Path

    def resource(self, name: str, **transfer: Any) -> ResourceConfig:
        usual = {**self.servers[name].transfer(self.proxy), "path": client_path(self.security)}
        return ResourceConfig(name, name, str(self.root), transfer={**usual, **transfer})

    def transfer(
        self, source: str = "one", target: str = "two", *, there: dict[str, Any] | None = None, **here: Any
    ) -> FileTransfer:
        """From *source* to *target*; *here* are other options of the source, *there* of the target."""
        resources = (self.resource(source, **here), self.resource(target, **(there or {})))
        return resolve.transfer_between(
            *(End(resource, resolve.shell_of(resource, "main@now")) for resource in resources)
        )

    def copy(self, transfer: FileTransfer, source: Path | str, target: Path | str, **how: Any) -> Transferred:
        within_seconds = how.pop("within_seconds", 60)
        options = CopyOptions(**how)
        return transfer.copy(str(source), str(target), options=options, timeout_seconds=within_seconds)


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    needs("globus-gridftp-server", "globus-url-copy", "grid-proxy-init", "openssl")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, contextlib.ExitStack() as running:
        root = Path(directory)
        security = copied_security(root / "security")
        proxy = running.enter_context(short_proxy(security))
        servers = {
            name: running.enter_context(
                gridftp.server(security, gridftp.GridFtpSite(name, address, root / name), *options)
            )
            for name, address, options in (
                ("one", "127.0.0.21", EVERYTHING),
                ("two", "127.0.0.22", ()),
                ("slow", "127.0.0.23", SLOW),
            )
        }
        (root / "small").write_bytes(os.urandom(1000))
        (root / "large").write_bytes(os.urandom(6_000_000))
        yield Grid(root, security, servers, proxy)


@pytest.fixture
def target(grid: Grid) -> Iterator[Path]:
    """A name in a fresh directory; nothing may be left in it but a file of that name."""
    directory = Path(tempfile.mkdtemp(dir=grid.root))
    yield directory / "output.dat"
    assert {path.name for path in directory.iterdir()} <= {"output.dat"}
    shutil.rmtree(directory)


def failure(grid: Grid, target: Path, transfer: FileTransfer, **how: Any) -> ProbeFailed:
    """Copy a small file and return the error."""
    with pytest.raises(ProbeFailed) as raised:
        grid.copy(transfer, grid.root / "small", target, **how)
    assert not target.exists()
    return raised.value


def test_streams_and_checksums_are_requested_from_the_servers(grid: Grid, target: Path) -> None:
    done = grid.copy(
        grid.transfer(), grid.root / "small", target, streams=3, block_bytes=65536, server_checksum=True
    )
    assert (done.bytes, done.streams, done.retries) == (1000, 3, 0)
    log = grid.servers["one"].log.read_text()
    assert "OPTS RETR Parallelism=3,3,3;" in log
    assert f"CKSM ADLER32 0 -1 {grid.root}/small" in log


def test_a_block_size_is_passed_on(grid: Grid) -> None:
    transfer = grid.transfer()
    assert isinstance(transfer, Transfer)
    command = transfer.command("/a b", "/c", CopyOptions(block_bytes=65536))
    assert command[command.index("-bs") + 1] == "65536"
    assert command[-2].endswith("/a%20b")


@pytest.mark.nightly
def test_each_end_may_have_a_proxy_of_its_own(grid: Grid, target: Path) -> None:
    second = grid.security.proxy("second")
    transfer = grid.transfer(there={"proxy_file": str(second)})
    assert len(transfer.credentials()) == 2
    assert grid.copy(transfer, grid.root / "small", target).bytes == 1000


def test_a_proxy_that_expires_too_soon_is_reported_before_the_copy(grid: Grid) -> None:
    proxy = str(grid.security.proxy("short", minutes=4))
    (credential,) = grid.transfer(proxy_file=proxy, there={"proxy_file": proxy}).credentials()
    credential.check(needed_seconds=60)
    with pytest.raises(CredentialUnfit) as raised:
        credential.check(needed_seconds=540)
    assert raised.value.message == f"proxy {proxy} expires in 4 min, the run needs about 9 min"


def test_a_missing_proxy_is_reported(grid: Grid, target: Path) -> None:
    nothing: dict[str, Any] = {"proxy_file": "/no/such/proxy"}
    error = failure(grid, target, grid.transfer(**nothing, there=nothing))
    assert isinstance(error, CredentialUnfit)
    assert error.message == "no valid proxy: File does not exist: /no/such/proxy is not a valid file"
    assert error.resource is None


def test_an_expired_proxy_is_reported_with_its_age(grid: Grid, target: Path) -> None:
    expired: dict[str, Any] = {"proxy_file": str(grid.security.expired_proxy(hours=47))}
    error = failure(grid, target, grid.transfer(**expired, there=expired))
    assert isinstance(error, CredentialUnfit)
    assert error.message == f"proxy {expired['proxy_file']} expired 47 h ago"


def test_an_unknown_authority_is_reported(grid: Grid, target: Path, tmp_path: Path) -> None:
    nobody: dict[str, Any] = {"ca_directory": str(tmp_path)}
    error = failure(grid, target, grid.transfer(**nobody, there=nobody))
    assert isinstance(error, CannotConnect)
    assert "its certificate is not trusted: Can't get the local trusted CA certificate" in error.message


def test_a_missing_directory_of_authorities_is_reported(grid: Grid, target: Path) -> None:
    nowhere: dict[str, Any] = {"ca_directory": "/no/such/directory"}
    error = failure(grid, target, grid.transfer(**nowhere, there=nowhere))
    assert isinstance(error, CredentialUnfit)
    assert error.message.startswith("no trusted authorities: File does not exist: /no/such/directory")


@pytest.mark.parametrize("end", ["one", "two"])
def test_a_server_with_another_name_is_reported_with_both_names(grid: Grid, target: Path, end: str) -> None:
    wrong: dict[str, Any] = {"subject": "/O=Grid/CN=elsewhere"}
    transfer = grid.transfer(**wrong) if end == "one" else grid.transfer(there=wrong)
    error = failure(grid, target, transfer)
    assert isinstance(error, CannotConnect)
    server = grid.servers[end]
    where = f"cannot connect to {server.site.address}:{server.port}"
    assert error.message == f"{where}: it is {server.subject}, not /O=Grid/CN=elsewhere"
    assert error.resource == end


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ("\n", "Gridmap lookup failure: Could not map /O=Grid/OU=gridcast/CN=Prober"),
        ('"/O=Grid/OU=gridcast/CN=Prober" nobody-at-all\n', "Mapped user 'nobody-at-all' is invalid."),
    ],
)
def test_a_subject_without_an_account_is_reported(grid: Grid, target: Path, mapping: str, why: str) -> None:
    gridmap = grid.security.gridmap
    usual = gridmap.read_text()
    gridmap.write_text(mapping)
    try:
        error = failure(grid, target, grid.transfer())
    finally:
        gridmap.write_text(usual)
    assert isinstance(error, CannotConnect)
    assert error.message.endswith(f": it does not let us in: {why}")


@pytest.mark.parametrize("end", ["one", "two"])
def test_a_server_that_is_down_is_reported(grid: Grid, target: Path, end: str) -> None:
    down: dict[str, Any] = {"port": 1}
    transfer = grid.transfer(**down) if end == "one" else grid.transfer(there=down)
    error = failure(grid, target, transfer)
    assert isinstance(error, CannotConnect)
    assert error.message == f"cannot connect to {grid.servers[end].site.address}:1: Connection refused"
    assert error.resource == end


def test_a_host_that_does_not_exist_is_named(grid: Grid, target: Path) -> None:
    error = failure(grid, target, grid.transfer(there={"host": "nowhere.invalid", "port": 2811}))
    assert isinstance(error, CannotConnect)
    assert error.message.startswith("cannot connect to nowhere.invalid:2811: ")
    assert "name resolution" in error.message or "not known" in error.message


def test_permission_denied_is_the_targets_failure(grid: Grid) -> None:
    target = Path("/sys/kernel/output.dat")  # even root may not
    error = failure(grid, target, grid.transfer())
    assert isinstance(error, CannotCopy)
    assert re.search(r"two:/sys/kernel/output.dat: Unable to open file .*: Permission denied", error.message)
    assert error.resource == "two"


def test_a_full_disk_is_the_targets_failure(grid: Grid) -> None:
    transfer = grid.transfer()
    assert isinstance(transfer, Transfer)
    with pytest.raises(CannotCopy) as raised:  # without the temporary name: the directory is not writable
        transfer.send(str(grid.root / "small"), "/dev/full", CopyOptions(), 20)
    assert raised.value.message == "write: No space left on device"
    assert (raised.value.resource, raised.value.exit_status) == ("two", 1)


def test_a_file_that_fills_a_small_disk_leaves_nothing_there(grid: Grid, small_disk: Path) -> None:
    with pytest.raises(CannotCopy, match="No space left on device"):
        grid.copy(grid.transfer(), grid.root / "large", small_disk / "output.dat")
    assert list(small_disk.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0755", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small tmpfs needs root")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_file_that_changes_on_the_way_has_another_checksum(grid: Grid, target: Path) -> None:
    with pytest.raises(CannotCopy, match=r"checksums differ: \w+ arrived, not \w+$") as raised:
        grid.copy(grid.transfer(), "/proc/uptime", target, server_checksum=True)
    assert raised.value.resource == "two"


def test_a_client_that_is_not_installed_is_named(grid: Grid, target: Path, tmp_path: Path) -> None:
    error = failure(grid, target, grid.transfer(path=str(tmp_path)))
    assert "cannot run globus-url-copy: No such file or directory at the reporter" in error.message


def test_a_transfer_without_a_host_is_refused(grid: Grid) -> None:
    message = "resource one: transfer 'gridftp': the host is missing or invalid"
    with pytest.raises(InvalidParameters, match=message):
        grid.transfer(host="")


def test_a_copy_from_a_silent_server_ends_at_the_limit(grid: Grid, target: Path) -> None:
    with signals(grid, "two", signal.SIGSTOP, signal.SIGCONT):
        error = failure(grid, target, grid.transfer(), within_seconds=1.5)
    assert isinstance(error, TookTooLong)
    assert error.message == "globus-url-copy from one to two ran longer than 1.5 s and was stopped"


def test_a_killed_server_is_a_lost_connection(grid: Grid, target: Path) -> None:
    transfer = grid.transfer("slow")
    with copying(grid, transfer, target) as done:
        kill_sessions(grid, "two")
        with pytest.raises(ConnectionLost) as raised:
            done.result()
    server = grid.servers["two"]
    where = f"{server.site.address}:{server.port}"
    # The client notices, or the source does and tells it.
    lost = "an end-of-file was reached|Broken pipe|Connection reset by peer"
    assert re.fullmatch(f"the connection to {where} was lost: ({lost})", raised.value.message)
    assert raised.value.resource == "two"


@pytest.mark.nightly
def test_the_tool_resumes_a_copy_and_counts_the_attempts(grid: Grid, target: Path) -> None:
    transfer = grid.transfer("slow", there={"retries": 3})
    with copying(grid, transfer, target, streams=2) as done:
        kill_sessions(grid, "two")
        copied = done.result()
    assert copied.retries == 1
    assert target.read_bytes() == (grid.root / "large").read_bytes()


def test_if_the_target_closed_the_connection_the_reason_is_read_there(grid: Grid, tmp_path: Path) -> None:
    one, two = (f"{grid.servers[name].site.address}:{grid.servers[name].port}" for name in ("one", "two"))
    log = (DATA / "url-copy-reset.txt").read_text()
    (tmp_path / "said").write_text(log.replace("127.0.0.11:2811", one).replace("127.0.0.12:2812", two))
    client = tmp_path / "globus-url-copy"
    client.write_text(f"#!/bin/sh\ncat {tmp_path}/said >&2\nexit 1\n")
    client.chmod(0o755)
    transfer = grid.transfer(path=f"{tmp_path}:/usr/bin:/bin")
    assert isinstance(transfer, Transfer)
    lost = f"the connection to {two} was lost: Connection reset by peer"
    with pytest.raises(ConnectionLost, match=f"^{lost}$") as lost_only:
        transfer.send(str(grid.root / "small"), str(tmp_path / "room"), CopyOptions(), 20)
    assert lost_only.value.resource == "two"
    with pytest.raises(CannotCopy) as raised:
        transfer.send(str(grid.root / "small"), "/dev/full", CopyOptions(), 20)
    assert raised.value.message == f"No space left on device ({lost})"
    assert raised.value.resource == "two"


@contextlib.contextmanager
def copying(grid: Grid, transfer: FileTransfer, target: Path, **how: Any) -> Iterator[Future[Transferred]]:
    """While the large file is on its way."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(grid.copy, transfer, grid.root / "large", target, **how)

        def arrives() -> bool:
            return any(path.stat().st_size > 0 for path in target.parent.iterdir())

        assert eventually(arrives)
        yield done


@contextlib.contextmanager
def signals(grid: Grid, name: str, before: signal.Signals, after: signal.Signals) -> Iterator[None]:
    """Send the server *before*, and *after* at the end of the context."""
    server = processes_naming(str(grid.servers[name].log))
    for pid in server:
        os.kill(pid, before)
    try:
        yield
    finally:
        for pid in server:
            os.kill(pid, after)


def kill_sessions(grid: Grid, name: str) -> None:
    """Kill the processes that serve clients, not the listening server."""
    for pid in processes_naming(str(grid.servers[name].log)):
        if b"\0-inetd" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)


def test_the_output_of_the_client_is_parsed() -> None:
    restarted = parse((DATA / "url-copy-restarted.txt").read_text())
    assert restarted == CopyLog(error="", at_fault="gsiftp://127.0.0.12:2812/data/d2/half", attempts=2)
    offline = parse((DATA / "url-copy-offline.txt").read_text())
    assert offline.at_fault == "gsiftp://127.0.0.15:2815/data/d2/x"
    assert offline.error.startswith("error: globus_ftp_client: the server responded with an error\n422 ")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("url-copy-offline.txt", "Service temporarily offline. Closing control connection."),
        ("url-copy-server-expired.txt", "its own certificate expired 3 d ago"),
        (
            "url-copy-not-trusted-there.txt",
            "it does not trust us: Can't get the local trusted CA certificate: Cannot find trusted CA "
            "certificate with hash caea6c14 in /etc/grid-security/certificates",
        ),
    ],
)
def test_a_refusal_by_a_server_is_explained_in_one_line(file: str, words: str) -> None:
    log = parse((DATA / file).read_text())
    assert explained(log.error, "ce:2811") == (CannotConnect, f"cannot connect to ce:2811: {words}")
