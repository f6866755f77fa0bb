"""Ensure that at most one supervisor runs per state directory.

Two flocks ensure this; the kernel releases them however a process ends. The supervisor alone holds
``supervisor.lock``, which contains its pid. The supervisor and all its guards hold ``services.lock``, so this
lock is free only after the last service has ended: a new supervisor never runs beside old servers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

WAIT_SECONDS = 30.0  # well above the grace that guards without a supervisor allow their services
_POLL_SECONDS = 0.05


class AlreadySupervised(RuntimeError):
    """Another supervisor, or a service of a supervisor that has ended, still runs."""


@contextlib.contextmanager
def only_supervisor(directory: Path) -> Iterator[int]:
    """Hold both locks of *directory*; yield the descriptor of ``services.lock``, which guards must keep open.

    Raises:
        AlreadySupervised: another supervisor runs (the message has its pid), or services of an ended
            supervisor run.
    """
    with _opened(directory / "supervisor.lock") as own, _opened(directory / "services.lock") as shared:
        if not _try_lock(own):
            raise AlreadySupervised(f"process {_pid_in(own)} is already the supervisor of {directory}")
        os.ftruncate(own, 0)
        os.pwrite(own, f"{os.getpid()}\n".encode(), 0)
        _wait_for(shared, directory)
        yield shared


def holder(directory: Path) -> int | None:
    """Return the pid of the supervisor of *directory*; None if there is no supervisor."""
    return _holder(directory / "supervisor.lock")


def is_free(directory: Path) -> bool:
    """Return whether neither a supervisor of *directory* nor any of its services is running."""
    return all(_holder(directory / name) is None for name in ("supervisor.lock", "services.lock"))


def _holder(file: Path) -> int | None:
    """Return the pid in the lock file *file* (0 if the file is empty); None if no process holds the lock."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if _try_lock(descriptor, fcntl.LOCK_SH) else _pid_in(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _wait_for(shared: int, directory: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not _try_lock(shared):
        if time.monotonic() >= deadline:
            raise AlreadySupervised(f"services of an earlier supervisor of {directory} have not ended yet")
        time.sleep(_POLL_SECONDS)


def _try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid_in(descriptor: int) -> int:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else 0
