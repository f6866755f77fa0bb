"""A control group (version 2) for the processes of one run, below the reporter's own group.

The reporter's group must be delegated to its user, as with ``Delegate=yes`` in a systemd unit or in many
containers; where it is not, there is no scope, and nothing else changes. Nothing leaves a control group: not
by forking twice, by a new session or by another environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

GIVE_UP_SECONDS = 10.0
_PAUSE_SECONDS = 0.005
_PREFIX = "gridcast-"


class ProcessScope:
    """A group of processes in *directory* of the cgroup file system."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def add(self, pid: int) -> None:
        """Move *pid*, and what it will start, into the scope; nothing happens if it has ended."""
        with contextlib.suppress(OSError):
            self._directory.joinpath("cgroup.procs").write_text(f"{pid}\n", encoding="ascii")

    def kill(self) -> set[int]:
        """Kill all processes of the scope, until none is left; return their process ids."""
        killed: set[int] = set()
        until = time.monotonic() + GIVE_UP_SECONDS
        while pids := self._pids():
            killed.update(pids)
            if time.monotonic() > until:
                break
            self._kill(pids)
            time.sleep(_PAUSE_SECONDS)
        return killed

    def cpu_seconds(self) -> float:
        """Return the CPU time that the processes used so far.

        There is no peak of their memory: the kernel enables the memory controller for groups below a group
        only while no process is in the group itself, and the reporter is in it.
        """
        lines = _read(self._directory / "cpu.stat").splitlines()
        values = dict(line.split()[:2] for line in lines if " " in line)
        return int(values.get("usage_usec", 0)) / 1_000_000

    def remove(self) -> None:
        """Remove the empty group, and those that its processes made in it."""
        for directory in reversed(self._groups()):
            with contextlib.suppress(OSError):
                directory.rmdir()

    def _kill(self, pids: list[int]) -> None:
        try:
            self._directory.joinpath("cgroup.kill").write_text("1\n", encoding="ascii")
        except OSError:  # before Linux 5.14
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def _pids(self) -> list[int]:
        return [int(pid) for group in self._groups() for pid in _read(group / "cgroup.procs").split()]

    def _groups(self) -> list[Path]:
        """Return the directories of the group and of all groups below it, parents first."""
        return [Path(path) for path, _, _ in os.walk(self._directory)]


def open_scope(name: str, parent: Path | None) -> ProcessScope | None:
    """Make the scope *name* in the group *parent*; None if the group is not delegated to this user."""
    if parent is None:
        return None
    directory = parent / f"{_PREFIX}{name}"
    try:
        directory.mkdir()
    except OSError:
        return None
    if os.access(directory / "cgroup.procs", os.W_OK) and os.access(parent / "cgroup.procs", os.W_OK):
        return ProcessScope(directory)
    with contextlib.suppress(OSError):
        directory.rmdir()
    return None


def scopes_in(parent: Path | None) -> Iterator[tuple[str, ProcessScope]]:
    """Yield the name and the scope of each scope in the group *parent*."""
    if parent is not None:
        with contextlib.suppress(OSError):
            for directory in list(parent.glob(f"{_PREFIX}*")):
                yield directory.name[len(_PREFIX) :], ProcessScope(directory)


def own_group() -> Path | None:
    """Return the directory of this process's group; None without cgroup version 2."""
    return parse_own_group(_read(Path("/proc/self/cgroup")), _read(Path("/proc/self/mountinfo")))


def parse_own_group(groups: str, mounts: str) -> Path | None:
    """Return the directory of the group in *groups* (``/proc/PID/cgroup``) by *mounts* (``mountinfo``).

    None if there is no file system of version 2, or if it does not show the group.
    """
    paths = [line[len("0::") :] for line in groups.splitlines() if line.startswith("0::")]
    for line in mounts.splitlines():
        fields, _, kind = line.partition(" - ")
        words = fields.split()
        if not paths or not kind.startswith("cgroup2 ") or len(words) < 5:
            continue
        root, mount_point = words[3].rstrip("/"), words[4]
        if (paths[0] + "/").startswith(root + "/") and ".." not in paths[0].split("/"):
            return Path(mount_point + paths[0][len(root) :])
    return None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
