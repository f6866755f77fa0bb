"""At most one supervisor per directory of state.

Two flocks, which no death can leave behind. ``supervisor.lock`` is the supervisor's own and names its
process. ``services.lock`` is kept open by every guard as well: it is free only when the last service of the
last supervisor is gone, so that a new one does not meet the old one's servers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE_SECONDS = 10.0  # more than the guards of a dead supervisor allow their services
_POLL_SECONDS = 0.05


class AlreadySupervised(RuntimeError):
    """Another supervisor, or what is left of one, is at work here."""


@contextlib.contextmanager
def only_supervisor(directory: Path) -> Iterator[int]:
    """Be the one supervisor of *directory*; yields the descriptor that its guards are to hold open.

    Raises:
        AlreadySupervised: somebody else is; says which process.
    """
    with _opened(directory / "supervisor.lock") as own, _opened(directory / "services.lock") as shared:
        if not _try_lock(own):
            raise AlreadySupervised(f"process {_written(own)} is already the supervisor of {directory}")
        os.ftruncate(own, 0)
        os.pwrite(own, f"{os.getpid()}\n".encode(), 0)
        _wait_for(shared, directory)
        yield shared


def holder(directory: Path) -> int | None:
    """The process that supervises *directory*, or None: nobody does."""
    return _holder(directory / "supervisor.lock")


def is_free(directory: Path) -> bool:
    """Whether no supervisor and no service of one is left."""
    return all(_holder(directory / name) is None for name in ("supervisor.lock", "services.lock"))


def _holder(file: Path) -> int | None:
    """The process written in *file*, 0 where none is, or None: nobody holds its lock."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if _try_lock(descriptor, fcntl.LOCK_SH) else _written(descriptor)
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
    deadline = time.monotonic() + PATIENCE_SECONDS
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


def _written(descriptor: int) -> int:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else 0
