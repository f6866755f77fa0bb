"""Who types a command."""

from __future__ import annotations

import os
import pwd


def caller() -> str:
    """The name of the user whose process this is, marked as one of the machine and not of ours."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container may run as anybody
        name = f"uid {uid}"
    return f"{name} (command line)"
