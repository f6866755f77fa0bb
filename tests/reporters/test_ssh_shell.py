"""The ssh shell against real servers: one login, and the errors of a failed one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware.programs import locate
from probes.base import InvalidParameters
from reporters.base import CannotConnect, ConnectionLost
from reporters.shells.ssh import Shell, parse_address
from tests.reporters.needs import needs
from tests.reporters.ssh_sites import Site, SshSites, processes_naming
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
LABEL = "circle-main@2026-03-01T12:07:00.000000Z"


@pytest.fixture(scope="module")
def sites() -> Iterator[SshSites]:
    with SshSites("ncsa") as running:
        yield running


@pytest.fixture
def site(sites: SshSites) -> Site:
    return sites.sites["ncsa"]


class Closing:
    """Makes shells and closes them."""

    def __init__(self, sites: SshSites) -> None:
        self._sites = sites
        self.shells: list[Shell] = []

    def __call__(self, **options: Any) -> Shell:
        shell = Shell(
            "ncsa", LABEL, **{"host": "ncsa", "config_file": str(self._sites.config_file), **options}
        )
        self.shells.append(shell)
        return shell


@pytest.fixture
def shell_of(sites: SshSites) -> Iterator[Closing]:
    closing = Closing(sites)
    yield closing
    for shell in closing.shells:
        shell.close()


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory that has room for the name of a socket."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="short-") as path:
        yield Path(path)


def failure(shell: Shell) -> CannotConnect:
    with pytest.raises(CannotConnect) as raised:
        shell.connect(timeout_seconds=60)
    assert raised.value.resource == "ncsa"
    return raised.value


def config(sites: SshSites, directory: Path, **changes: str) -> str:
    """A configuration like the sites', with some of its options changed."""
    lines = sites.config_file.read_text().splitlines()
    for name, value in changes.items():
        lines = [f"  {name} {value}" if line.strip().startswith(f"{name} ") else line for line in lines]
    file = directory / "ssh_config"
    file.write_text("\n".join(lines))
    return str(file)


def test_all_commands_share_one_login(shell_of: Closing, site: Site) -> None:
    logins = site.logins
    shell = shell_of()
    shell.connect(timeout_seconds=60)
    for _ in range(3):
        assert shell.run(["true"], timeout_seconds=60).returncode == 0
    assert site.logins == logins + 1


def test_every_session_has_the_label_of_its_run(shell_of: Closing, site: Site) -> None:
    shell = shell_of()
    shell.connect(timeout_seconds=60)
    site.environments.clear()
    shell.run(["true"], timeout_seconds=60)
    shell.start(["true"]).wait(60)
    assert [sent["LC_GRIDCAST_RUN"] for sent in site.environments] == [LABEL, LABEL]


def test_arguments_pass_every_login_shell_unchanged(shell_of: Closing, site: Site) -> None:
    needs("tcsh")
    shell = shell_of()
    shell.connect(timeout_seconds=60)
    odd = ("a\nb", "!x", "$HOME", "it's", "\\!", "ä", "", "*")
    site.login_shell = locate("tcsh")
    try:
        done = shell.run(["printf", "%s|", *odd], timeout_seconds=60)
        started = shell.start(["sh", "-c", "read -r line\necho $line!"])
        started.close_input()
        assert (done.stdout, started.wait(60).stdout) == ("".join(f"{text}|" for text in odd), "!\n")
    finally:
        site.login_shell = "/bin/sh"


def test_a_host_whose_key_is_unknown_is_never_trusted(
    shell_of: Closing, sites: SshSites, tmp_path: Path
) -> None:
    error = failure(shell_of(config_file=config(sites, tmp_path, UserKnownHostsFile=str(tmp_path / "none"))))
    port = sites.sites["ncsa"].port
    assert error.message == f"cannot connect to 127.0.0.1:{port}: Host key verification failed."
    assert "No ED25519 host key is known" in error.stderr_tail


def test_a_refused_key_is_permission_denied(shell_of: Closing, sites: SshSites, tmp_path: Path) -> None:
    key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    error = failure(shell_of(config_file=config(sites, tmp_path, IdentityFile=str(key))))
    assert error.message.endswith(": prober@127.0.0.1: Permission denied (publickey).")


def test_a_closed_port_refuses_the_connection(shell_of: Closing, sites: SshSites, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    error = failure(shell_of(config_file=config(sites, tmp_path, Port=str(port))))
    assert error.message == f"cannot connect to 127.0.0.1:{port}: Connection refused"


def test_a_host_that_does_not_exist_is_named(shell_of: Closing, sites: SshSites, tmp_path: Path) -> None:
    error = failure(shell_of(config_file=config(sites, tmp_path, HostName="nowhere.invalid")))
    assert "Could not resolve hostname nowhere.invalid" in error.message


def test_a_server_without_a_banner_times_out(shell_of: Closing, sites: SshSites, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        error = failure(
            shell_of(config_file=config(sites, tmp_path, Port=str(port)), connect_timeout_seconds=1.0)
        )
    assert error.message == f"cannot connect to 127.0.0.1:{port}: timed out after 1 s"


def test_a_login_that_hangs_times_out(shell_of: Closing, sites: SshSites, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        slow = shell_of(config_file=config(sites, tmp_path, Port=str(port)), login_timeout_seconds=0.5)
        error = failure(slow)
    assert error.message == f"cannot connect to 127.0.0.1:{port}: timed out after 0.5 s"


def test_a_host_cannot_be_an_option(shell_of: Closing, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameters, match="expected a host or a user"):
        shell_of(host=f"-oProxyCommand=touch {tmp_path}/taken")
    assert list(tmp_path.iterdir()) == []


def test_a_broken_connection_is_reported_with_the_message_of_ssh_and_can_be_reopened(
    shell_of: Closing, sites: SshSites
) -> None:
    shell = shell_of()
    shell.connect(timeout_seconds=60)
    running = shell.start(["sh", "-c", "echo ready; exec cat"])
    assert running.wait_for_output(lambda text: text == "ready\n", 60)
    sites.drop("ncsa")
    assert running.wait(60).returncode != 0
    where = f"127.0.0.1:{sites.sites['ncsa'].port}"
    with pytest.raises(ConnectionLost) as raised:
        shell.run(["true"], timeout_seconds=60)
    assert raised.value.message.startswith(f"the connection to {where} was lost: ")
    assert "closed by remote host" in raised.value.stderr_tail
    shell.connect(timeout_seconds=60)
    assert shell.run(["true"], timeout_seconds=60).returncode == 0


def test_an_interrupted_command_differs_from_a_failed_one(
    shell_of: Closing, sites: SshSites, site: Site
) -> None:
    shell = shell_of()
    shell.connect(timeout_seconds=60)
    site.install("cut-me", "sleep 600; exit 3")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(shell.run, ["cut-me"], timeout_seconds=60)
        assert eventually(lambda: bool(processes_naming(str(site.root / "bin" / "cut-me"))))
        sites.drop("ncsa")
        with pytest.raises(ConnectionLost):
            running.result()


def test_before_connecting_there_is_no_connection(shell_of: Closing) -> None:
    with pytest.raises(ConnectionLost, match="ncsa is not connected"):
        shell_of().run(["true"], timeout_seconds=60)


def test_more_programs_than_sessions_wait_for_each_other(shell_of: Closing) -> None:
    shell = shell_of(sessions=2)
    shell.connect(timeout_seconds=60)
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda n: shell.run(["echo", str(n)], timeout_seconds=60).stdout, range(6)))
    assert done == [f"{n}\n" for n in range(6)]


def test_nothing_is_left_of_a_connection_that_is_closed(
    shell_of: Closing, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short_path))
    shell = shell_of()
    shell.connect(timeout_seconds=60)
    assert len(list(short_path.iterdir())) == 1
    shell.close()
    assert list(short_path.iterdir()) == []
    assert not processes_naming(str(short_path))


def test_nothing_is_left_of_a_connection_whose_reporter_is_killed(sites: SshSites, short_path: Path) -> None:
    script = (
        "import sys, time; from reporters.shells.ssh import Shell;"
        "shell = Shell('ncsa', 'l@s', host='ncsa', config_file=sys.argv[1]);"
        "shell.connect(timeout_seconds=60); running = shell.start(['sh', '-c', 'echo up; exec sleep 600']);"
        "running.wait_for_output(bool, 60); print('up', flush=True); time.sleep(600)"
    )
    reporter = subprocess.Popen(
        [sys.executable, "-c", script, str(sites.config_file)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(short_path)},
    )
    with reporter:
        line = reporter.stdout.readline() if reporter.stdout else b""
        directories = list(short_path.iterdir())
        reporter.kill()
    assert line == b"up\n"
    assert len(directories) == 1
    assert eventually(lambda: not list(short_path.iterdir()))
    assert eventually(lambda: not processes_naming(str(short_path)))


def test_the_address_is_parsed_from_the_effective_configuration() -> None:
    shown = "host ncsa\nuser prober\nhostname login.example.org\nport 2222\naddressfamily any\n"
    assert parse_address(shown) == "login.example.org:2222"
    assert parse_address("") == ""
