"""The account of this process. A container may run as a user without an entry in the user database."""

from __future__ import annotations

import os
import pwd
from pathlib import Path


def own_name() -> str:
    """Return the name of the user of this process; the number of one without a name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def own_home() -> Path:
    """Return ``HOME``, or the home directory in the user database; ``/`` if there is none, as login does."""
    home = os.environ.get("HOME", "")
    if not home.startswith("/"):
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = "/"
    return Path(home or "/")


def expanded(path: str) -> Path:
    """Return *path* with the home directory for ``~``, and that of a user who exists for ``~user``."""
    if path == "~" or path.startswith("~/"):
        return own_home() / path[2:]
    return Path(os.path.expanduser(path))  # noqa: PTH111  # Path.expanduser raises if there is no such user
