"""A demo as a user starts it: one command in a process of its own, with servers of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from monitor.operations.supervisor import read_status
from monitor.testbed.demo.definition import REMOTE_REPORTERS
from reporters.remote import agent_process
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[4]
DEADLINE_SECONDS = 480.0
Answer = TypeVar("Answer")


class DemoProcess:
    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.var = directory / "var"
        self._output = directory / "output"
        environment = {
            name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}
        }
        self._environment = {**environment, "GRIDCAST_VAR": str(self.var)}
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "demo", "--weather=calm", *options],
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def command(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run ``manage.py`` with *argv* for the state of this demo, until it ends."""
        return subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *argv],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )

    def eventually(self, holds: Callable[[], Answer]) -> Answer:
        return eventually(holds, within_seconds=DEADLINE_SECONDS)

    def output(self) -> str:
        return self._output.read_text()

    def pid(self, service: str) -> int | None:
        """Return the pid of *service* while it is up."""
        status = read_status(self.var / "run" / "supervisor.json")
        service_status = status.services.get(service) if status else None
        return service_status.pid if service_status and service_status.state == "up" else None

    def kill(self, service: str) -> None:
        """Send SIGKILL to *service* and wait until the supervisor has restarted it."""
        pid = self.eventually(lambda: self.pid(service))
        assert pid is not None, f"{service} is not up: {self.output()}"
        os.kill(pid, signal.SIGKILL)
        is_restarted = self.eventually(lambda: self.pid(service) not in {None, pid})
        assert is_restarted, f"{service} is not up again: {self.output()}"

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self) -> int:
        return self.process.wait(DEADLINE_SECONDS)

    def processes(self) -> list[int]:
        """Return the pids of all live processes of this demo, found by their environment."""
        variable = f"GRIDCAST_VAR={self.var}".encode()
        return [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and _has_variable(entry, variable)
        ]

    def agents(self) -> list[int]:
        """Return the pids of the remote reporters of this demo."""
        sites = self.var / "testbed" / "sites"
        states = (sites / name / "home" / ".local/state/gridcast-reporter" for name in REMOTE_REPORTERS)
        return [pid for state in states for pid in agent_process.pids(state)]

    def log(self, service: str) -> str:
        file = self.var / "log" / f"{service}.log"
        return file.read_text() if file.exists() else ""


def _has_variable(process: Path, variable: bytes) -> bool:
    try:
        return variable in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
