"""The user that runs PostgreSQL, which refuses to run as root."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from . import PreparationFailed

CANDIDATES = ("postgres", "nobody")


class DropArguments(TypedDict, total=False):
    """The arguments of subprocess that drop the privileges of root."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class ServerUser:
    """An ordinary user that root can switch to."""

    uid: int
    gid: int

    def drop(self) -> DropArguments:
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can(self, flag: str, path: Path) -> bool:
        """Return whether ``test FLAG PATH`` is true for this user; the test respects ACLs and mounts."""
        return subprocess.run(["test", flag, path], cwd="/", check=False, **self.drop()).returncode == 0


def server_user(data: Path) -> ServerUser | None:
    """Return the user that runs the server of *data*; None for the current user.

    If root is the current user, the server runs as the owner of existing data or, without data, as the first
    existing user of ``CANDIDATES``.

    Raises:
        PreparationFailed: an ordinary user has no name or does not own the data; root finds no candidate.
    """
    owner = data.stat().st_uid if data.exists() else None
    if os.geteuid() != 0:
        if owner not in {None, os.geteuid()}:
            raise PreparationFailed(
                f"{data} belongs to user {owner}, not to the current user. "
                "Run as that user, remove it, or set GRIDCAST_VAR to another directory"
            )
        _check_user_name()
        return None
    if owner:
        return ServerUser(owner, data.stat().st_gid)
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerUser(entry.pw_uid, entry.pw_gid)
    raise PreparationFailed(
        f"PostgreSQL refuses to run as root, and there is no user {' or '.join(CANDIDATES)}"
    )


def _check_user_name() -> None:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise PreparationFailed(
            f"user id {os.geteuid()} has no name (no line in /etc/passwd), which initdb requires. "
            "Run as a user with a name, or set DATABASE_URL of an existing server"
        ) from None
