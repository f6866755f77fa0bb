"""The owner of a chain: the process that writes it, and whether it has died.

A process of this host and boot is looked up. Of a process on another host (the directory may be NFS) only the
heartbeat is seen: a file whose content changes. A process whose heartbeat did not change for
``SILENT_SECONDS``, by the clock of the observer, counts as dead. That may be wrong, so retiring a chain is
safe even while its writer lives (see ``reporters.spool.spool``).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable

OWNER, HEARTBEAT = "owner", "heartbeat"
CLOSED = "closed"  # the content of an owner file whose writer has ended the chain
SILENT_SECONDS = 900.0


@dataclass(frozen=True)
class Process:
    """A process; *started* is its start in clock ticks after the boot. Empty texts are unknown."""

    pid: int
    host: str
    boot: str
    pid_namespace: str
    started: str

    @classmethod
    def current(cls) -> Process:
        namespace = ""
        with contextlib.suppress(OSError):
            namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # the target is no path
        boot = _read(Path("/proc/sys/kernel/random/boot_id"))
        return cls(os.getpid(), socket.gethostname(), boot, namespace, _started(os.getpid()))

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Process | None:
        """Parse the content of an owner file; return None if it is none."""
        try:
            values = json.loads(text)
            texts = [values[name] for name in ("host", "boot", "pid_namespace", "started")]
            return cls(int(values["pid"]), *map(str, texts))
        except (ValueError, TypeError, KeyError):
            return None


class Observer:
    """Says whether the owners of chains have died; *monotonic* returns seconds."""

    def __init__(self, own: Process, monotonic: Callable[[], float]) -> None:
        self._own = own
        self._monotonic = monotonic
        self._seen: dict[Path, tuple[str, float]] = {}

    def is_dead(self, directory: Path) -> bool:
        """Return whether the owner of the chain in *directory* has died or closed the chain."""
        text = _read(directory / OWNER)
        if text == CLOSED:
            return True
        process = Process.from_text(text)
        if process is not None and self._can_look_up(process):
            return _started(process.pid) != process.started
        return self.is_silent(directory, text + _read(directory / HEARTBEAT))

    def is_silent(self, path: Path, content: str) -> bool:
        """Return whether *content* has been seen at *path* for ``SILENT_SECONDS``, and nothing else."""
        seen, since = self._seen.get(path, ("", 0.0))
        if seen != content or path not in self._seen:
            self._seen[path] = (content, self._monotonic())
            return False
        return self._monotonic() - since >= SILENT_SECONDS

    def is_proven(self, directory: Path) -> bool:
        """Return whether the death is certain: the owner closed the chain, or is looked up on this host."""
        text = _read(directory / OWNER)
        process = Process.from_text(text)
        return text == CLOSED or (process is not None and self._can_look_up(process))

    def forget(self, path: Path) -> None:
        self._seen.pop(path, None)

    def _can_look_up(self, process: Process) -> bool:
        mine = (self._own.host, self._own.boot, self._own.pid_namespace)
        return all((self._own.boot, process.started)) and mine == (
            process.host,
            process.boot,
            process.pid_namespace,
        )


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return when the process started, in clock ticks after the boot; empty if it has ended."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return "" if len(fields) < 20 or fields[0] in "ZX" else fields[19]
