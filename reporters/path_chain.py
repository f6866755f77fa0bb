"""Refuse a path of this host that another user could replace: the rules of ``scratch_chain``, for any file.

A user that can rename a directory on the way to a file can put an own file in its place. So the state, the
site policy, keys, caches and temporary files are read, executed and written only where each directory and
symbolic link from ``/`` on, and the file itself, belongs to root or to this user, and only they may write to
it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from reporters.account import own_name
from reporters.scratch_chain import TRUSTED_GROUPS_FILE

_MOST_LINKS = 40


def unsafe_reason(path: Path, *, trusted: Path | None = None) -> str:
    """Return why another user could replace *path*, with what to do; empty if none can.

    *path* is absolute. What does not exist yet is safe if the directories above it are. The directory
    *trusted* and those above it are not examined: they are trusted for another reason.

    Symbolic links are followed as the kernel does, from ``/`` downwards: an entry that passed can no longer
    be replaced, so the path leads to the same file from then on.
    """
    # os.path instead of pathlib: ".." after a symbolic link must not be resolved in the text.
    directory, names, links = "/", _names(path), 0
    unexamined = set(map(str, () if trusted is None else (trusted, *trusted.parents)))
    while True:
        entry = directory
        try:
            status = os.lstat(entry)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            return f"{entry} cannot be examined: {error.strerror}"
        is_link = stat.S_ISLNK(status.st_mode)
        if entry not in unexamined and (reason := _entry_reason(entry, status)):
            return reason
        if is_link:
            links += 1
            if links > _MOST_LINKS:
                return f"{entry} is one of too many symbolic links"
            target = os.readlink(entry)  # noqa: PTH115  # used as text
            directory = "/" if target.startswith("/") else os.path.dirname(entry)  # noqa: PTH120  # as text
            names = [*_names(target), *names]
        if not names:
            return ""
        directory = _below(directory, names.pop(0))


def _names(path: Path | str) -> list[str]:
    return [name for name in os.fspath(path).split("/") if name not in ("", ".")]


def _below(directory: str, name: str) -> str:
    """Return the entry *name* of *directory*, which has no symbolic links."""
    return os.path.dirname(directory) if name == ".." else os.path.join(directory, name)  # noqa: PTH118, PTH120


def _entry_reason(entry: str, status: os.stat_result) -> str:
    """Return why another user than root and this one could replace *entry* or what lies in it."""
    mode, user = status.st_mode, os.geteuid()
    about = f"{entry} has mode {stat.filemode(mode)}, owner {status.st_uid}, group {status.st_gid}"
    if status.st_uid not in (0, user):
        return (
            f"{about}: its owner could replace it; "
            f"use a place whose directories belong to root or user {user}"
        )
    is_directory = stat.S_ISDIR(mode)
    if stat.S_ISLNK(mode) or (is_directory and mode & stat.S_ISVTX):
        return ""
    could = "could replace its entries" if is_directory else "could change it"
    sticky = ", or set the sticky bit (chmod +t)" if is_directory else ""
    if mode & stat.S_IWOTH:
        return f"{about}: every user {could}; take the permission away (chmod o-w){sticky}"
    if mode & stat.S_IWGRP and not _is_trusted_group(status.st_gid):
        return (
            f"{about}: members of group {status.st_gid} {could}; take the permission away "
            f"(chmod g-w){sticky}, or trust the group: "
            f"add the line {status.st_gid} to ~/{TRUSTED_GROUPS_FILE}"
        )
    return ""


def _is_trusted_group(group: int) -> bool:
    """Return whether *group* is the private group of this user, or one that the user trusts."""
    # For directories that a group can write only: the agent keeps the memory that it once needed.
    import grp  # noqa: PLC0415

    name = own_name()
    try:
        entry = grp.getgrgid(group)
    except KeyError:  # a number without a name
        pass
    else:
        if group == os.getegid() and entry.gr_name == name and set(entry.gr_mem) <= {name}:
            return True
    file = Path(os.environ.get("HOME") or "/nonexistent", TRUSTED_GROUPS_FILE)
    try:
        with file.open("rb") as stream:
            status = os.fstat(stream.fileno())
            is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            if not is_ours or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return False
            return str(group).encode() in stream.read().splitlines()
    except OSError:
        return False
