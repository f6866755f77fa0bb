"""Shells and copies over real OpenSSH servers: ways in, hosts that are not known, faults of servers."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.errors import NotServing
from monitor.testbed.middleware import openssh
from monitor.testbed.middleware.openssh import SshClients, SshdOptions, SshServer, make_key, public, sshd
from probes.base import InvalidParameters
from probes.common.checks import check_transfers
from probes.grid import CopyOptions, Transferred
from reporters import resolve
from reporters.base import (
    CannotConnect,
    CannotCopy,
    ConnectionLost,
    End,
    ResourceShell,
    ResourceUnfit,
    TookTooLong,
)
from reporters.batch.fork import Batch
from reporters.config import Assignment, ResourceConfig
from reporters.deadline import Deadline
from reporters.grid import RunGrid
from reporters.shells.ssh import Shell
from reporters.transfers.ssh import PROGRAMS
from tests.reporters.needs import needs
from tests.reporters.places import install
from tests.reporters.small_file_system import small_file_system
from tests.reporters.ssh_sites import processes_naming
from tests.waiting import eventually

LABEL = "circle-main@2026-03-01T12:07:00.000000Z"
# Root is denied nothing unless it drops that capability.
CAREFUL = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


@dataclass
class Servers:
    """*dtn* and *mover* are other ways to the files of *ncsa*; behind *gate* are all of them."""

    clients: SshClients
    iu: SshServer
    ncsa: SshServer
    gate: SshServer
    dtn: SshServer
    mover: SshServer
    shells: dict[str, ResourceShell] = field(default_factory=dict, init=False)

    def end(self, server: SshServer, **transfer: Any) -> End:
        """With a shell that stays connected."""
        resource = self.resource(server, **transfer)
        if server.name not in self.shells:
            self.shells[server.name] = resolve.shell_of(resource, LABEL)
            self.shells[server.name].connect(timeout_seconds=60)
        return End(resource, self.shells[server.name])

    def resource(self, server: SshServer, **transfer: Any) -> ResourceConfig:
        return self.clients.resource(server, **transfer)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    needs("sshd", "rsync")
    clients = SshClients(tmp_path_factory.mktemp("openssh"))
    kinds = {"iu": SshdOptions(), "ncsa": SshdOptions(sessions=3, prefix=CAREFUL), "gate": SshdOptions()}
    kinds |= {"dtn": SshdOptions(), "mover": SshdOptions(sftp_only=True, prefix=CAREFUL)}
    with contextlib.ExitStack() as running:
        servers = Servers(
            clients, *(running.enter_context(sshd(name, clients, kinds[name])) for name in kinds)
        )
        yield servers
        for shell in servers.shells.values():
            shell.close()


@pytest.fixture
def opened() -> Iterator[contextlib.ExitStack]:
    """Closes the shells of a test."""
    with contextlib.ExitStack() as shells:
        yield shells


def shell_to(
    opened: contextlib.ExitStack, servers: Servers, server: SshServer, *lines: str, **options: Any
) -> Shell:
    """A shell, not connected; *lines* precede the clients' configuration."""
    config = servers.clients.directory / f"config-{len(list(servers.clients.directory.iterdir()))}"
    config.write_text("\n".join([*lines, servers.clients.config_file.read_text()]))
    shell = Shell(server.name, LABEL, **{"host": server.name, "config_file": str(config), **options})
    opened.callback(shell.close)
    return shell


def refusal(shell: Shell) -> CannotConnect:
    with pytest.raises(CannotConnect) as raised:
        shell.connect(timeout_seconds=60)
    return raised.value


def logins(server: SshServer) -> int:
    return server.log.read_text().count("Accepted publickey")


@pytest.mark.parametrize("how", ["option", "configuration"])
def test_a_host_is_reached_through_a_jump_host(
    opened: contextlib.ExitStack, servers: Servers, how: str
) -> None:
    before = logins(servers.gate), logins(servers.iu)
    if how == "option":
        shell = shell_to(opened, servers, servers.iu, jump="gate")
    else:
        shell = shell_to(opened, servers, servers.iu, "Host iu", "  ProxyJump gate")
    shell.connect(timeout_seconds=60)
    assert shell.run(["printenv", "LC_GRIDCAST_RUN"], timeout_seconds=60).stdout == f"{LABEL}\n"
    assert (logins(servers.gate), logins(servers.iu)) == (before[0] + 1, before[1] + 1)


@pytest.mark.parametrize("jump", ["-oProxyCommand=true", "", "a b", "gate,-v", "$(id)"])
def test_an_invalid_jump_host_is_refused(jump: str) -> None:
    with pytest.raises(InvalidParameters, match="expected a list of jump hosts"):
        Shell("iu", LABEL, host="iu", jump=jump)


CARELESS = ("Host *", "  StrictHostKeyChecking no", "  NoHostAuthenticationForLocalhost yes")


def test_an_unknown_host_is_refused_whatever_the_configuration(
    opened: contextlib.ExitStack, servers: Servers
) -> None:
    error = refusal(shell_to(opened, servers, servers.iu, *CARELESS, "  UserKnownHostsFile /dev/null"))
    assert error.message == f"cannot connect to 127.0.0.1:{servers.iu.port}: Host key verification failed."
    assert "No ED25519 host key is known for iu" in error.stderr_tail


def test_a_changed_host_key_is_refused_whatever_the_configuration(
    opened: contextlib.ExitStack, servers: Servers, tmp_path: Path
) -> None:
    other = public(make_key(tmp_path / "other")).read_text()
    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text(f"iu {other}")
    error = refusal(shell_to(opened, servers, servers.iu, *CARELESS, f"  UserKnownHostsFile {known_hosts}"))
    assert "Host key verification failed." in error.message
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in error.stderr_tail


def test_an_unknown_jump_host_is_refused(opened: contextlib.ExitStack, servers: Servers) -> None:
    lines = ("Host gate", "  StrictHostKeyChecking no", "  UserKnownHostsFile /dev/null")
    error = refusal(shell_to(opened, servers, servers.iu, *lines, jump="gate"))
    assert "No ED25519 host key is known for gate" in error.stderr_tail
    assert "Host key verification failed." in error.message


def test_a_missing_configuration_is_named(opened: contextlib.ExitStack, servers: Servers) -> None:
    error = refusal(shell_to(opened, servers, servers.iu, config_file="/nowhere/ssh_config"))
    assert error.message == "cannot connect to iu: there is no /nowhere/ssh_config"


def test_the_output_of_a_login_is_not_that_of_a_program(servers: Servers) -> None:
    greets = 'echo "Welcome!"; echo; echo "module: command not found" >&2; eval "$SSH_ORIGINAL_COMMAND"'
    with sshd("greets", servers.clients, SshdOptions(lines=(f"ForceCommand {greets}",))) as server:
        shell = servers.end(server).shell
        done = shell.run(["sh", "-c", "echo out; echo err >&2; exit 255"], timeout_seconds=60)
        assert (done.returncode, done.stdout, done.stderr) == (255, "out\n", "err\n")
        directory = server.root / "jobs"
        directory.mkdir()
        job = Batch(shell).submit(["true"], directory=str(directory), cpus=1, wall_seconds=20)
        assert job.wait_ended(timeout_seconds=60) >= 0
        job.cancel()
        shell.close()


@pytest.mark.nightly
def test_a_certificate_is_accepted_until_it_expires(
    opened: contextlib.ExitStack, servers: Servers, tmp_path: Path
) -> None:
    clients, key = servers.clients, make_key(tmp_path / "key")
    with sshd("certified", clients, SshdOptions(authority=True)) as server:
        assert "Permission denied (publickey)" in refusal(shell_to(opened, servers, server)).message
        clients.certify(key)
        shell = shell_to(opened, servers, server, identity_file=str(key))
        shell.connect(timeout_seconds=60)
        assert shell.run(["true"], timeout_seconds=60).returncode == 0
        clients.certify(key, valid="20200101:20200102")
        expired = refusal(shell_to(opened, servers, server, identity_file=str(key)))
    assert "Permission denied (publickey)" in expired.message
    assert "Certificate invalid: expired" in server.log.read_text()


def test_a_frozen_server_is_detected(opened: contextlib.ExitStack, servers: Servers) -> None:
    shell = shell_to(opened, servers, servers.gate, keep_alive_seconds=1)
    shell.connect(timeout_seconds=60)
    running = shell.start(["sh", "-c", "echo up; exec cat"])
    assert running.wait_for_output(lambda text: text == "up\n", 60)
    frozen = servers.gate.sessions()
    for process in frozen:
        os.kill(process, signal.SIGSTOP)
    try:
        with pytest.raises(ConnectionLost, match=r"was lost: Timeout, server 127\.0\.0\.1 not responding"):
            shell.run(["true"], timeout_seconds=60)
    finally:
        kill(frozen)


def kill(processes: list[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def test_no_more_sessions_are_opened_than_the_server_allows(
    opened: contextlib.ExitStack, servers: Servers
) -> None:
    within = shell_to(opened, servers, servers.ncsa, sessions=3)
    within.connect(timeout_seconds=60)
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda n: within.run(["echo", str(n)], timeout_seconds=60).stdout, range(6)))
    assert done == [f"{number}\n" for number in range(6)]


def test_a_refused_session_is_reported(opened: contextlib.ExitStack, servers: Servers) -> None:
    shell = shell_to(opened, servers, servers.ncsa)
    shell.connect(timeout_seconds=60)
    for running in [shell.start(["sh", "-c", "echo up; exec cat"]) for _ in range(3)]:
        assert running.wait_for_output(lambda text: text == "up\n", 60)
    with pytest.raises(ConnectionLost, match=r"refused a session: .*open"):
        shell.run(["true"], timeout_seconds=60)


def test_a_session_that_is_killed_at_the_site_is_reported(
    opened: contextlib.ExitStack, servers: Servers
) -> None:
    shell = shell_to(opened, servers, servers.ncsa)
    shell.connect(timeout_seconds=60)
    with pytest.raises(ConnectionLost, match=r"ended a session without an exit status$"):
        shell.run(["pkill", "-KILL", "-s", "0"], timeout_seconds=60)
    assert shell.run(["echo", "up"], timeout_seconds=60).stdout == "up\n"


def test_the_wait_for_a_session_is_limited(opened: contextlib.ExitStack, servers: Servers) -> None:
    shell = shell_to(opened, servers, servers.iu, sessions=1)
    shell.connect(timeout_seconds=60)
    with ThreadPoolExecutor(1) as pool:
        until_told = ["sh", "-c", 'until [ -e "$1" ]; do sleep 0.05; done', "sh", f"{servers.iu.root}/go"]
        first = pool.submit(shell.run, until_told, timeout_seconds=60)
        assert eventually(lambda: len(processes_naming(f"{servers.iu.root}/go")) > 0)
        try:
            with pytest.raises(TookTooLong, match=r"^true at iu waited 0\.1 s for a session"):
                shell.run(["true"], timeout_seconds=0.1)
        finally:
            (servers.iu.root / "go").touch()
        assert first.result().returncode == 0
    assert shell.run(["true"], timeout_seconds=60).returncode == 0


def test_a_connection_whose_guardian_is_killed_leaves_nothing_and_can_be_reopened(
    opened: contextlib.ExitStack, servers: Servers
) -> None:
    label = "unguarded@2026-03-01T12:07:00.000000Z"
    shell = Shell("iu", label, host="iu", config_file=str(servers.clients.config_file))
    opened.callback(shell.close)
    shell.connect(timeout_seconds=60)
    ours = [Path("/proc", str(pid)) for pid in processes_naming(f"SetEnv=LC_GRIDCAST_RUN={label}")]
    (master,) = (process for process in ours if (process / "comm").read_text() == "ssh\n")
    command = (master / "cmdline").read_text().split("\0")
    directory = Path(command[command.index("-S") + 1]).parent
    assert (directory / "master").exists()
    kill([int((master / "stat").read_text().split()[3])])
    assert eventually(lambda: not processes_naming(str(directory)))
    assert eventually(lambda: not directory.exists())
    with pytest.raises(ConnectionLost, match=r"the connection to .* was lost: the guardian of sh is gone"):
        shell.run(["true"], timeout_seconds=60)
    shell.connect(timeout_seconds=60)
    assert shell.run(["true"], timeout_seconds=60).returncode == 0


class Copies:
    """Copies by one program from *iu* to *ncsa*, through *server*."""

    def __init__(self, servers: Servers, program: str, server: SshServer | None = None) -> None:
        by_way_of = server or (servers.mover if program == "sftp" else servers.ncsa)
        target = servers.end(servers.ncsa, program=program, host=by_way_of.name)
        self.ends = [servers.end(servers.iu, program=program), target]
        self.source, self.target = servers.iu.scratch / "input.dat", servers.ncsa.scratch / "output.dat"

    def input(self, size_bytes: int) -> None:
        with self.source.open("wb") as file:
            file.truncate(size_bytes)

    def copy(self, target: Path | None = None, **changes: Any) -> Transferred:
        source, there = self.ends
        transfer = resolve.transfer_between(
            source, replace(there, resource=replace(there.resource, **changes))
        )
        paths = str(self.source), str(target or self.target)
        return transfer.copy(*paths, options=CopyOptions(block_bytes=65536), timeout_seconds=60)

    def failure(self, target: Path | None = None, **changes: Any) -> CannotCopy:
        with pytest.raises(CannotCopy) as raised:
            self.copy(target, **changes)
        return raised.value


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.nightly
def test_an_interrupted_copy_names_the_target_and_leaves_no_file(servers: Servers, program: str) -> None:
    copies = Copies(servers, program, servers.dtn)
    copies.input(2_000_000_000)  # far more than arrives before the check
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(copies.failure)
        assert eventually(lambda: any(half.stat().st_size for half in servers.ncsa.scratch.glob(".*.part")))
        kill(servers.dtn.sessions())
        error = running.result(timeout=120)
    assert error.resource == "ncsa"
    assert re.search(r"closed by remote host|Broken pipe|reset by|Connection closed", error.stderr_tail)
    assert list(servers.ncsa.scratch.iterdir()) == []


def test_a_target_without_write_permission_is_named(servers: Servers, program: str, tmp_path: Path) -> None:
    copies = Copies(servers, program)
    copies.input(10)
    tmp_path.chmod(0o555)
    error = copies.failure(tmp_path / "output.dat")
    assert error.resource == "ncsa"
    assert "Permission denied" in error.message


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte."""
    with small_file_system(tmp_path, 1):
        yield tmp_path


def test_a_full_disk_is_reported_and_no_file_stays(servers: Servers, program: str, small: Path) -> None:
    copies = Copies(servers, program)
    copies.input(3_000_000)
    error = copies.failure(small / "output.dat")
    assert error.resource == "ncsa"
    assert (
        error.message.endswith("No space left on device") or "No space left on device (28)" in error.message
    )
    assert list(small.iterdir()) == []


def test_a_copy_to_a_host_unknown_to_the_source_is_refused(servers: Servers, program: str) -> None:
    copies = Copies(servers, program)
    copies.input(10)
    numbered = {"kind": "ssh", "program": program, "host": "127.0.0.1", "port": servers.ncsa.port}
    error = copies.failure(transfer=numbered)
    assert error.resource == "ncsa"
    assert error.message.endswith("Host key verification failed.")


def test_a_source_without_the_program_is_named(servers: Servers, program: str, tmp_path: Path) -> None:
    with bare(servers, tmp_path) as server:
        (server.root / "bin" / program).unlink(missing_ok=True)
        copies = Copies(servers, program)
        copies.ends[0] = servers.end(server, program=program)
        copies.input(10)
        error = copies.failure()
    assert error.message.endswith(f": {program} is not installed at bare")
    assert error.resource == "bare"


def test_rsync_must_be_at_the_target_too(servers: Servers, tmp_path: Path) -> None:
    with bare(servers, tmp_path) as server:
        copies = Copies(servers, "rsync")
        copies.ends[1] = servers.end(server, program="rsync")
        copies.input(10)
        error = copies.failure()
        assert copies_need(copies) == (["rsync"], ["rsync"])
    assert error.message.endswith(": rsync is not installed at bare")
    assert error.resource == "bare"


def test_the_error_that_rsync_loses_is_read_at_the_target(servers: Servers, tmp_path: Path) -> None:
    with bare(servers, tmp_path) as server:
        install(tmp_path, "rsync", "exit 3")
        copies = Copies(servers, "rsync")
        copies.ends[0] = servers.end(server, program="rsync")
        copies.input(10)
        error = copies.failure(servers.ncsa.scratch / "missing" / "output.dat")
    assert error.message.endswith(
        ": rsync error: errors selecting input/output files, dirs (code 3): No such file or directory"
    )
    assert error.resource == "ncsa"


def test_a_missing_rsync_is_found_before_anything_is_copied(servers: Servers, tmp_path: Path) -> None:
    with bare(servers, tmp_path) as server:
        copies = Copies(servers, "rsync")
        copies.ends[1] = servers.end(server, program="rsync")
        resources = {end.resource.name: end.resource for end in copies.ends}
        assignment = Assignment("s", datetime(2026, 3, 1, tzinfo=UTC), "home", "x", {}, resources)
        grid = RunGrid(assignment, Deadline(60.0, time.monotonic), lambda *_: None)
        try:
            with pytest.raises(ResourceUnfit, match="rsync is not installed at bare"):
                check_transfers(grid, [("iu", "bare")], CopyOptions())
        finally:
            grid.clean_up()


def test_the_tools_of_a_copy_are_listed_for_hosts_with_a_shell(servers: Servers) -> None:
    assert copies_need(Copies(servers, "rsync", servers.dtn)) == (["rsync"], [])
    assert copies_need(Copies(servers, "sftp")) == (["sftp"], [])


def test_rsync_cannot_copy_to_a_host_without_a_shell(servers: Servers) -> None:
    copies = Copies(servers, "rsync", servers.mover)
    copies.input(10)
    error = copies.failure()
    assert error.resource == "ncsa"
    assert "protocol" in error.message


def test_sftp_takes_no_line_break_in_a_name(servers: Servers) -> None:
    copies = Copies(servers, "sftp")
    copies.source = copies.source.with_name("a\nb")
    copies.input(10)
    assert copies.failure().message.endswith(r"a\nb'")


def test_another_program_is_refused_by_name(servers: Servers) -> None:
    end = servers.end(servers.ncsa, program="ftp")
    with pytest.raises(
        InvalidParameters, match="ncsa: transfer 'ssh': program 'ftp' is not one of scp, rsync, sftp"
    ):
        resolve.transfer_between(end, end)


def test_a_server_that_cannot_be_started_says_why(servers: Servers) -> None:
    options = SshdOptions(port=servers.iu.port)
    with (
        pytest.raises(NotServing, match=r"Bind to port \d+ on 127\.0\.0\.1 failed: Address already in use"),
        sshd("second", servers.clients, options),
    ):
        pass


@contextlib.contextmanager
def bare(servers: Servers, directory: Path) -> Iterator[SshServer]:
    """A server with little on its PATH."""
    for program in ("sh", "timeout", "wc", "mv", "rm", "cat", "setpriv"):
        (directory / program).symlink_to(f"/usr/bin/{program}")
    with openssh.sshd("bare", servers.clients, SshdOptions(path=str(directory))) as server:
        yield server
        servers.shells.pop("bare").close()


def copies_need(copies: Copies) -> tuple[list[str], list[str]]:
    can = resolve.transfer_between(*copies.ends).capabilities
    return list(can.source_tools), list(can.target_tools)
