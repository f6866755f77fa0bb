"""Where state lives, where sockets are, and where root puts what others must be able to reach."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

from . import NotOurs

SOCKETS = Path("/tmp")  # noqa: S108 - short, and there for everybody; ``sockets_made`` trusts nothing that it finds
RELOCATED = Path("/var/lib/gridcast")  # not /var/tmp: what cleans that up does not know a database


def socket_directory(var: Path) -> Path:
    """Where the sockets of *var* are: the same for every process of one user, short however long *var* is."""
    return SOCKETS / f"gridcast-{os.geteuid()}-{_hash(var)}"


def socket_directories(var: Path) -> list[Path]:
    """Those of every user who has run the servers of *var*."""
    return list(SOCKETS.glob(f"gridcast-*-{_hash(var)}"))


def sockets_made(var: Path) -> Path:
    """``socket_directory``, made where it was not there.

    Only we may write into it. Root lets others pass, not look, since PostgreSQL runs as somebody else there
    and has a directory of its own inside, which only it (and root) can enter.

    Raises:
        NotOurs: something of that name was there, by somebody else or open to others.
    """
    directory = socket_directory(var)
    mode = 0o711 if os.geteuid() == 0 else 0o700
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    found = directory.lstat()  # not followed: a link planted here would be somebody else's choice of place
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise NotOurs(
            f"{directory} is not a directory that only we can write to (owner {found.st_uid}, "
            f"mode {stat.filemode(found.st_mode)}); remove it"
        )
    directory.chmod(mode)
    return directory


def relocated(var: Path) -> Path:
    """Where root keeps what belongs to *var* but could not be reached there by an ordinary user."""
    return RELOCATED / _hash(var)


def relocated_made(var: Path) -> Path:
    """Raises NotOurs: somebody else owns the place."""
    directory = relocated(var)
    for each in (directory.parent, directory):
        each.mkdir(mode=0o755, exist_ok=True)
        if each.lstat().st_uid != os.geteuid() or each.is_symlink():
            raise NotOurs(f"{each} is not ours; remove it")
        each.chmod(0o711)
    return directory


def _hash(var: Path) -> str:
    return hashlib.sha256(os.fsencode(var.resolve())).hexdigest()[:12]
