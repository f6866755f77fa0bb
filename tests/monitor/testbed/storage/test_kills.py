"""Killed sweeps and programs with tokens leave no file, mount, process or changed setting.

By night with a hundred kills of each (GRIDCAST_STORAGE_KILLS).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.storage import profiles
from monitor.testbed.storage.mount import mounted
from reporters.tokens.server import status
from tests.waiting import eventually

ROOT = Path(__file__).parents[4]
BY_DAY, BY_NIGHT = 2, int(os.environ.get("GRIDCAST_STORAGE_KILLS", "100"))
kills = pytest.mark.parametrize("kills", [BY_DAY, pytest.param(BY_NIGHT, marks=pytest.mark.nightly)])

SET = """#!/bin/sh
echo "$1" > {file}.draft && mv {file}.draft {file}
"""
READERS, FILE_BYTES = 4, 8 << 20


@pytest.fixture
def device(emulator: Path, tmp_path: Path) -> Iterator[Path]:
    """An emulated device, which is empty at the end and can be unmounted."""
    directory = tmp_path / "device"
    directory.mkdir()
    directory.chmod(0o700)
    with mounted(emulator, directory, profiles.load("flash")):
        yield directory
    assert not directory.is_mount()
    assert list(directory.iterdir()) == []


def processes_with(text: str) -> list[int]:
    """Return the processes with *text* in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and text.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def sweep_command(device: Path, state: Path, settings: Mapping[str, object]) -> list[str]:
    parameters = {
        "request_bytes": "65536",
        "queue_depth": "1",
        "file_bytes": "1048576",
        "seconds": "0.02",
        "tool": "own",
        "settings": json.dumps(settings),
    }
    command = [sys.executable, "-m", "reporters", "once", "storage_sweep", f"--scratch={device}"]
    return [*command, f"--state={state}", *(f"--set={name}={value}" for name, value in parameters.items())]


@kills
def test_killed_sweeps_leave_nothing_after_the_next_run(device: Path, tmp_path: Path, kills: int) -> None:
    setting, setter, state = tmp_path / "scheduler", tmp_path / "set-scheduler", tmp_path / "state"
    setting.write_text("kyber\n", encoding="ascii")
    setter.write_text(SET.format(file=setting), encoding="ascii")
    setter.chmod(0o755)
    levels = {"levels": ["none", "bfq"], "set": f"{setter} {{level}}", "read": f"cat {setting}"}
    command = sweep_command(device, state, {"scheduler": levels})
    began = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    longest, drawn = time.monotonic() - began, random.Random(kills)
    changed = 0
    for _ in range(kills):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as reporter:
            with contextlib.suppress(subprocess.TimeoutExpired):
                reporter.wait(drawn.uniform(0.0, longest))
            reporter.kill()
        assert eventually(lambda: not processes_with(f"{device}/gridcast-"))
        changed += setting.read_text() != "kyber\n"
    last = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert last.returncode == 0, last.stdout
    assert setting.read_text() == "kyber\n"
    assert changed or kills == BY_DAY, "no kill came between a change and its restoration"
    assert json.loads((state / "once-storage_sweep.state").read_text())["restore"] is None
    assert [file for file in device.rglob("*") if not file.is_dir()] == []
    subprocess.run(["find", str(device), "-mindepth", "1", "-delete"], check=True)


class LimitedReaders:
    """A server of the tokens of *device*, and programs that read from it."""

    def __init__(self, device: Path, directory: Path) -> None:
        self.device, self.socket = device, directory / "socket"
        self.command = [sys.executable, "-m", "reporters", "tokens"]
        self.serve()
        run = [*self.command, "run", "--socket", str(self.socket), "--", "env"]
        text = subprocess.run(run, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        variables = (line.partition("=") for line in text.splitlines())
        added = {name: value for name, _, value in variables if name.startswith(("LD_PRELOAD", "GRIDCAST_"))}
        assert "LD_PRELOAD" in added
        self.environment = {**os.environ, **added}

    def serve(self) -> None:
        options = [
            "--socket",
            str(self.socket),
            "--readers",
            "1",
            "--writers",
            "1",
            "--quantum-bytes",
            "65536",
        ]
        self.server = subprocess.Popen(
            [*self.command, "serve", str(self.device), *options], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self.server.stdout
        assert self.server.stdout.readline()

    def read(self, number: int) -> subprocess.Popen[bytes]:
        argv = ["dd", f"if={self.device}/file.{number}", "of=/dev/null", "bs=16k", "status=none"]
        return subprocess.Popen(argv, env=self.environment, stderr=subprocess.PIPE)


@kills
def test_killed_programs_and_servers_leave_the_others_going_on(
    device: Path, tmp_path: Path, kills: int
) -> None:
    for number in range(READERS):
        (device / f"file.{number}").write_bytes(bytes(FILE_BYTES))
    readers, drawn = LimitedReaders(device, tmp_path), random.Random(kills)
    for _ in range(kills):
        running = [readers.read(number) for number in range(READERS)]
        processes: list[subprocess.Popen[Any]] = [*running, readers.server]
        victim = drawn.choice(processes)
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.wait(drawn.uniform(0.0, 0.1))
        victim.send_signal(signal.SIGKILL)
        ends = [(process.communicate()[1], process.returncode) for process in running]
        for process, (errors, returncode) in zip(running, ends, strict=True):
            assert returncode in ((0, -signal.SIGKILL) if process is victim else (0,)), errors
            assert errors.count(b"go on without limits") == errors.count(b"\n") <= 1
        if victim is readers.server:
            victim.communicate()
            readers.serve()
    assert eventually(lambda: status(readers.socket)["tokens"]["read"]["held_seconds"] == [])
    readers.server.terminate()
    readers.server.communicate()
    assert processes_with(str(device)) == processes_with(f"{device}\0spindles")  # the emulator
    assert not readers.socket.exists()
    for file in device.iterdir():
        file.unlink()
