"""Who runs a server that refuses to be root."""

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
    """The arguments with which subprocess drops privileges."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class ServerUser:
    """An ordinary user that root can become. Made by ``for_data``."""

    uid: int
    gid: int

    def drop(self) -> DropArguments:
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can(self, flag: str, path: Path) -> bool:
        """Whether ``test FLAG PATH`` is true for this user: the kernel knows of ACLs and mounts."""
        return subprocess.run(["test", flag, path], cwd="/", check=False, **self.drop()).returncode == 0


def for_data(data: Path) -> ServerUser | None:
    """Who is to run the server whose data are, or will be, in *data*; None: we ourselves.

    As root: whoever owns the data already (they may have been made by an ordinary user), else the first of
    ``CANDIDATES`` that exists.

    Raises:
        PreparationFailed: we are not root and the data are somebody else's or we have no name; or we are root
            and there is nobody to become.
    """
    owner = data.stat().st_uid if data.exists() else None
    if os.geteuid() != 0:
        if owner not in {None, os.geteuid()}:
            raise PreparationFailed(
                f"{data} belongs to the user {owner}, not to us: it was made by root or somebody else. "
                "Run as that user again, remove it, or set GRIDCAST_VAR to another directory"
            )
        _check_that_we_have_a_name()
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
        f"PostgreSQL refuses to run as root, and there is no user {' or '.join(CANDIDATES)} to run it"
    )


def _check_that_we_have_a_name() -> None:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise PreparationFailed(
            f"the user id {os.geteuid()} has no name here (no line in /etc/passwd), and initdb wants one. "
            "Run as a user with a name, or set DATABASE_URL to a server that exists"
        ) from None
