"""Read the files of credentials: at most ``LONGEST_BYTES`` each, and never blocked by a pipe or device.

A file that another user could replace is not read.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from reporters.path_chain import unsafe_reason

LONGEST_BYTES = 1024 * 1024


def read(file: Path) -> tuple[os.stat_result, bytes]:
    """Return the file's status and its first ``LONGEST_BYTES``.

    Raises:
        OSError: *file* is no regular file, cannot be read, or another user could replace it; *strerror* of
            the error is always set.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        if reason := unsafe_reason(file.absolute()):
            raise PermissionError(errno.EPERM, reason)
        return status, os.read(descriptor, LONGEST_BYTES)
    finally:
        os.close(descriptor)


def exists(path: Path) -> bool:
    """Return whether *path* exists; False if permission is denied (``Path.exists`` would raise)."""
    return _mode(path) is not None


def is_directory(path: Path) -> bool:
    """Return whether *path* is a directory; False if permission is denied."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None
