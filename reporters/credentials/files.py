"""Files that should hold credentials: read without waiting for a pipe or a device, and never far beyond what
a credential is long.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LONGEST_BYTES = 1024 * 1024


def read(file: Path) -> tuple[os.stat_result, bytes]:
    """Its status, and its first ``LONGEST_BYTES``. Raises OSError, whose *strerror* says why."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        return status, os.read(descriptor, LONGEST_BYTES)
    finally:
        os.close(descriptor)


def is_there(path: Path) -> bool:
    """Whether *path* leads to something; not where we may not look (pathlib raises there)."""
    return _mode(path) is not None


def is_directory(path: Path) -> bool:
    """The same of a directory."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None
