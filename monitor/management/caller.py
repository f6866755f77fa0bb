"""The caller of a command."""

from __future__ import annotations

import os
import pwd


def caller_name() -> str:
    """Return the operating-system user of this process, marked as different from users of gridcast."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container may run as a user without an account
        name = f"uid {uid}"
    return f"{name} (command line)"
