"""Directories outside the state directory: sockets, and data that root relocates for ordinary users."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

from reporters.path_chain import unsafe_reason

from . import NotOurs

SOCKETS = Path("/tmp")  # noqa: S108 - short, on every machine; ``make_socket_directory`` checks owner and mode
RELOCATED = Path("/var/lib/gridcast")  # not /var/tmp, which is cleaned automatically


def socket_directory(var: Path) -> Path:
    """Return the directory of the sockets of *var*: a short path, the same for all processes of a user."""
    return SOCKETS / f"gridcast-{os.geteuid()}-{_hash(var)}"


def socket_directories(var: Path) -> list[Path]:
    """Return the socket directories of all users that have run the servers of *var*."""
    return list(SOCKETS.glob(f"gridcast-*-{_hash(var)}"))


def make_socket_directory(var: Path) -> Path:
    """Create ``socket_directory``; only the current user can write to it.

    A directory of root can be entered by other users: PostgreSQL then runs as another user, and its sockets
    are in a subdirectory of that user.

    Raises:
        NotOurs: the path exists and belongs to another user, or others can write to it.
    """
    directory = socket_directory(var)
    mode = 0o711 if os.geteuid() == 0 else 0o700
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()  # lstat: another user may have planted a symbolic link
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise NotOurs(
            f"{directory} is not a directory that only this user can write to (owner {status.st_uid}, "
            f"mode {stat.filemode(status.st_mode)}); remove it"
        )
    _refuse_replaceable(directory)
    directory.chmod(mode)
    return directory


def relocation(var: Path) -> Path:
    """Return the directory for files of *var* that the server's user could not reach below *var*."""
    return RELOCATED / _hash(var)


def make_relocation(var: Path) -> Path:
    """Create and return ``relocation``. Raises NotOurs if it belongs to another user."""
    directory = relocation(var)
    for level in (directory.parent, directory):
        level.mkdir(mode=0o755, exist_ok=True)
        if level.lstat().st_uid != os.geteuid() or level.is_symlink():
            raise NotOurs(f"{level} belongs to another user; remove it")
        _refuse_replaceable(level)
        level.chmod(0o711)
    return directory


def _refuse_replaceable(directory: Path) -> None:
    if reason := unsafe_reason(directory):
        raise NotOurs(f"cannot use {directory}: {reason}")


def _hash(var: Path) -> str:
    return hashlib.sha256(os.fsencode(var.resolve())).hexdigest()[:12]
