"""The user who calls a command."""

from __future__ import annotations

import os
import pwd


def caller_name() -> str:
    """Return the name of the operating-system user of this process.

    The name is marked, so that it differs from the names of users of gridcast.
    """
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container may run as a user without an account
        name = f"uid {uid}"
    return f"{name} (command line)"
