"""Atomic writes, and the lock of a grid's directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from monitor.testbed.errors import AlreadyRunning


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace *path* atomically: a reader gets the old or the new text."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def directory_lock(directory: Path) -> Iterator[None]:
    """Hold the lock of *directory*; the kernel releases the lock however the process ends.

    Raises:
        AlreadyRunning: another process holds the lock.
    """
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning(f"the sites in {directory} are up already") from error
        yield
