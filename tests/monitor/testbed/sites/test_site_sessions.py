"""Sessions at a site: commands, streams, environment, login, and their end."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.monitor.testbed.sites.local_grid import DEADLINE_SECONDS, Client
from tests.processes import is_gone
from tests.waiting import eventually

DAEMON = "nohup env -i setsid sh -c 'echo $$ > {file}; exec sleep 600' </dev/null >/dev/null 2>&1 &"


def pid_in(file: Path) -> int:
    assert eventually(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def test_a_command_runs_at_the_site_and_returns_output_and_status(client: Client) -> None:
    done = client.run("tacc", 'cat; echo "$SITE_NAME in $PWD" >&2; exit 7', stdin="to the site")
    assert (done.returncode, done.stdout) == (7, "to the site")
    assert done.stderr == f"tacc in {client.grid.directory}/sites/tacc/home\n"


def test_much_output_on_both_streams_arrives_whole(client: Client) -> None:
    done = client.run("anl", "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2")
    assert (len(done.stdout), len(done.stderr)) == (3_000_000, 3_000_000)


def test_a_program_need_not_read_its_input(client: Client) -> None:
    assert client.run("anl", "exit 4", stdin="x" * 1_000_000).returncode == 4


def test_the_signal_that_ends_a_program_is_reported(client: Client) -> None:
    done = client.run("anl", "kill -TERM $$", options=("-v",))
    assert done.returncode == 255
    assert "client_input_channel_req: channel 0 rtype exit-signal" in done.stderr


def test_a_session_has_a_small_clean_environment_and_the_label_of_its_run(client: Client) -> None:
    label = client.new_label()
    lines = client.run("iu", "env", label=label).stdout.splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    assert variables["LC_GRIDCAST_RUN"] == label
    assert variables["HOME"] == f"{client.grid.directory}/sites/iu/home"
    for_its_programs = {"SITE_GRID", "SITE_NAME", "SITE_PACED", "SITE_RUN", "SITE_SESSION"}
    of_the_site = {"HOME", "LOGNAME", "PATH", "SHELL", "USER"} | for_its_programs
    of_the_shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    of_the_client = {name for name in variables if name.startswith("LC_")}
    assert set(variables) - of_the_shell - of_the_client == of_the_site


def test_there_is_no_interactive_shell(client: Client) -> None:
    argv = [*client.argv("purdue", "")[:-1]]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert done.returncode == 1
    assert "purdue: this site runs commands and serves files, but has no interactive shell." in done.stderr


def test_everything_of_a_session_ends_when_its_client_disconnects(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with subprocess.Popen(client.argv("ncsa", f"{DAEMON.format(file=file)} sleep 600")) as session:
        try:
            pid = pid_in(file)
            assert not is_gone(pid)
        finally:
            session.kill()
    assert eventually(lambda: is_gone(pid))


def test_a_signal_of_the_client_reaches_the_program(client: Client, tmp_path: Path) -> None:
    """The OpenSSH client sends signals from a terminal only, so asyncssh's client sends it here."""
    import asyncio

    import asyncssh

    async def interrupted() -> int | None:
        connection = await asyncssh.connect("anl", config=str(client.grid.ssh_config), known_hosts=None)
        try:
            process = await connection.create_process(
                "trap 'exit 9' TERM; echo waiting; while :; do sleep 0.05; done"
            )
            await process.stdout.readline()
            process.send_signal("TERM")  # a shell's reaction to INT depends on how its child ends
            return (await asyncio.wait_for(process.wait(), DEADLINE_SECONDS)).exit_status
        finally:
            connection.close()
            await connection.wait_closed()

    assert asyncio.run(interrupted()) == 9


def test_a_background_program_outlives_an_orderly_session(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    done = client.run("ncsa", f"{DAEMON.format(file=file)} exit 0")
    pid = pid_in(file)
    assert done.returncode == 0
    assert client.run("ncsa", "true").returncode == 0
    assert not is_gone(pid)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_only_the_grids_user_may_log_in(client: Client, user: str) -> None:
    done = client.run("anl", "true", options=("-l", user))
    assert done.returncode == 255
    assert "Permission denied (publickey,password)" in done.stderr


def test_a_key_removed_from_authorized_keys_is_refused(client: Client) -> None:
    keys = client.grid.directory / "sites/purdue/authorized_keys"
    before = keys.read_text()
    keys.write_text("")
    try:
        assert "Permission denied" in client.run("purdue", "true").stderr
    finally:
        keys.write_text(before)
    assert client.run("purdue", "true").returncode == 0


def test_a_site_accepts_its_password_and_no_other(client: Client, tmp_path: Path) -> None:
    import json

    def log_in(password: str) -> subprocess.CompletedProcess[str]:
        answer = tmp_path / "answer"
        answer.write_text(f"#!/bin/sh\necho '{password}'\n")
        answer.chmod(0o755)
        environment = {**os.environ, "SSH_ASKPASS": str(answer), "SSH_ASKPASS_REQUIRE": "force"}
        options = ("-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1")
        argv = ["ssh", "-F", str(client.grid.ssh_config), *options, "sdsc", "true"]
        return subprocess.run(
            argv, env=environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )

    right = json.loads((client.grid.directory / "state.json").read_text())["passwords"]["sdsc"]
    assert log_in(right).returncode == 0
    assert "Permission denied" in log_in("guessed").stderr


def test_an_unknown_host_key_is_not_trusted(client: Client, tmp_path: Path) -> None:
    options = ("-o", f"UserKnownHostsFile={tmp_path / 'empty'}", "-o", "StrictHostKeyChecking=yes")
    done = client.run("anl", "true", options=options)
    assert "Host key verification failed" in done.stderr
