"""The documented commands start together on an empty state directory, as often as one likes."""

from __future__ import annotations

import multiprocessing
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import LazySettings
from django.contrib.staticfiles import finders

from monitor.core.env import ROOT
from monitor.web.pages.http import static_files
from tests.waiting import eventually

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
GUIDE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
PROGRAMS = ("gunicorn", "celery")
STARTS = 5
FILES = 40
WRITERS = 4
STOP_SECONDS = 90.0  # as systemd waits


def documented() -> dict[str, list[str]]:
    """Return each command of a long-running process of gridcast, by where it is documented."""
    commands = {
        f"{name} of docker-compose.yml": service.get("command", []) for name, service in COMPOSE.items()
    }
    commands |= {f"{text} of docs/operations.md": shlex.split(text) for text in shown_in_the_guide()}
    return {where: command for where, command in commands.items() if command and command[0] in PROGRAMS}


def gunicorn_commands() -> dict[str, list[str]]:
    return {where: command for where, command in documented().items() if command[0] == "gunicorn"}


def shown_in_the_guide() -> Iterator[str]:
    yield from re.findall(rf"`((?:{'|'.join(PROGRAMS)}) [^`\n]+)`", GUIDE)
    yield from re.findall(rf"^((?:{'|'.join(PROGRAMS)}) .+)$", GUIDE, re.MULTILINE)


class Started:
    """The documented *commands*, started at the same moment with the state directory *var*."""

    def __init__(self, commands: Mapping[str, list[str]], var: Path, logs: Path) -> None:
        self._logs = logs
        self.ports: dict[str, int] = {}
        self.processes = {where: self._start(where, command, var) for where, command in commands.items()}

    def _start(self, where: str, command: list[str], var: Path) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", *(word for word in command if not word.startswith("--bind="))]
        environment = {**os.environ, "GRIDCAST_VAR": str(var), "HOME": str(var), "PYTHONUNBUFFERED": "1"}
        for name in ("GRIDCAST_SECRET_KEY", "XDG_RUNTIME_DIR"):
            environment.pop(name, None)
        if command[0] == "gunicorn":
            self.ports[where] = free_port()
            argv.append(f"--bind=127.0.0.1:{self.ports[where]}")
        with self._log(where).open("wb") as log:
            return subprocess.Popen(
                argv,
                env=environment,
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a process group, as of a unit of systemd
            )

    def _log(self, where: str) -> Path:
        return self._logs / f"{list(documented()).index(where)}.log"

    def ended(self) -> list[str]:
        """Return the ends of the logs of the processes that have ended."""
        ended = [where for where, process in self.processes.items() if process.poll() is not None]
        return [f"{where}: {self._log(where).read_text()[-3000:]}" for where in ended]

    def are_up(self) -> bool:
        return not self.starting()

    def starting(self) -> list[str]:
        return [where for where in self.processes if not self._is_up(where)]

    def _is_up(self, where: str) -> bool:
        if where in self.ports:
            return answers(self.ports[where])
        started = "beat v" if "beat" in documented()[where] else "-------------- celery@"
        return started in self._log(where).read_text()

    def stop(self) -> None:
        """Stop all processes as a supervisor does: what has not ended after a while is killed.

        A Celery worker that stops may wait for a pool process that waits to write to it (billiard).
        """
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def start_together(commands: Mapping[str, list[str]], directory: Path) -> None:
    var = directory / "var"
    started = Started(commands, var, directory)
    try:
        assert eventually(lambda: started.are_up() or started.ended(), within_seconds=600), started.starting()
        assert not started.ended()
        assert (var / ".gridcast").is_file(), "`make clean` may remove the directory"
        assert not list(var.glob("static-draft-*"))
    finally:
        started.stop()


def test_each_kind_of_process_is_documented_in_both_places() -> None:
    kinds = {(command[0], "beat" in command, "-Q" in command) for command in documented().values()}
    assert kinds == {("gunicorn", False, False), ("celery", True, False), ("celery", False, True)}
    assert len(documented()) >= 8


@pytest.mark.nightly
def test_two_web_servers_of_two_processes_each_start_together_on_an_empty_directory(tmp_path: Path) -> None:
    """Without ``--preload``: each process loads gridcast, so four of them write the same files."""
    commands = {
        where: [word for word in command if word != "--preload"]
        for where, command in gunicorn_commands().items()
    }
    for number in range(STARTS):
        (directory := tmp_path / str(number)).mkdir()
        start_together(commands, directory)


@pytest.mark.nightly
def test_all_documented_processes_start_together_on_an_empty_directory(tmp_path: Path) -> None:
    for number in range(STARTS):
        (directory := tmp_path / str(number)).mkdir()
        start_together(documented(), directory)


@pytest.mark.parametrize("where", gunicorn_commands())
def test_the_documented_web_server_loads_once_and_shares_no_control_socket(where: str) -> None:
    assert {"--preload", "--no-control-socket"} <= set(documented()[where])


def test_processes_that_write_copies_at_once_leave_complete_ones(
    settings: LazySettings, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for number in range(FILES):
        (files / f"{tmp_path.name}-{number}.css").write_text(f"{number}" * 20_000)
    settings.VAR_DIR, settings.STATICFILES_DIRS = tmp_path / "var", [files]
    names = settings.STATICFILES_FINDERS
    settings.STATICFILES_FINDERS = [name for name in names if "AppDirectories" not in name]
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]
    try:
        writers = write_at_once()
        assert [writer.exitcode for writer in writers] == [0] * WRITERS
        copies = {path.name for path in (tmp_path / "var" / "static").iterdir()}
        expected = {static_files.hashed_name(file.name) for file in files.iterdir()}
        assert copies == {f"{name}{suffix}" for name in expected for suffix in ("", ".br", ".gz")}
    finally:
        finders.get_finder.cache_clear()  # type: ignore[attr-defined]


def write_at_once() -> list[Any]:
    forking = multiprocessing.get_context("fork")
    barrier = forking.Barrier(WRITERS)

    def write() -> None:
        barrier.wait()
        static_files.write_copies()

    writers = [forking.Process(target=write) for _ in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    return writers
