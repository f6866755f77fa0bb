"""A demo as a newcomer starts it: one command, real processes, which may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from monitor.supervisor import read_status
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]
WITHIN_SECONDS = 240.0
Answer = TypeVar("Answer")


class Demo:
    """A demo in a process of its own, with servers of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.var = directory / "var"
        self.output = directory / "output"
        environment = {
            name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}
        }
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "demo", "--weather=calm", *options],
                env={**environment, "GRIDCAST_VAR": str(self.var)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def eventually(self, holds: Callable[[], Answer]) -> Answer:
        return eventually(holds, within_seconds=WITHIN_SECONDS)

    def said(self) -> str:
        return self.output.read_text()

    def pid(self, service: str) -> int | None:
        """Of the service's own process, while it is up."""
        status = read_status(self.var / "run" / "supervisor.json")
        known = status.services.get(service) if status else None
        return known.pid if known and known.state == "up" else None

    def kill(self, service: str) -> None:
        """SIGKILL, and wait until the supervisor has brought it back."""
        pid = self.eventually(lambda: self.pid(service))
        assert pid is not None, f"{service} is not up: {self.said()}"
        os.kill(pid, signal.SIGKILL)
        again = self.eventually(lambda: self.pid(service) not in {None, pid})
        assert again, f"{service} is not up again: {self.said()}"

    def processes(self) -> list[int]:
        """Everything alive that belongs to this demo."""
        mark = f"GRIDCAST_VAR={self.var}".encode()
        return [
            int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and has(entry, mark)
        ]

    def wait(self) -> int:
        return self.process.wait(WITHIN_SECONDS)


def has(process: Path, mark: bytes) -> bool:
    try:
        return mark in (process / "environ").read_bytes()
    except OSError:
        return False
