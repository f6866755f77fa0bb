"""Files of a grid's directory: written whole or not at all, and its lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from monitor.testbed.errors import AlreadyRunning


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace *path*, so that a reader sees the old text or the new one and never half of it."""
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
def only_one(directory: Path) -> Iterator[None]:
    """Hold the lock of *directory*; the kernel gives it back however the process ends.

    Raises:
        AlreadyRunning: another process has it.
    """
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning(f"the sites in {directory} are up already") from error
        yield
