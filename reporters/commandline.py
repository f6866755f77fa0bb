"""Write a program and its arguments as one command line for a remote shell."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Sequence

# A script for sh that runs the encoded script in its $0.
RUN_ENCODED = 'eval "$(printf %s "$0" | base64 -d)"'
# The login shell may be csh, where quotes do not protect these two.
_SPECIAL_IN_CSH = re.compile(r"[\n!]")


def encoded(script: str) -> str:
    """Encode *script* in letters, digits and ``+/=``, which need no quoting."""
    return base64.b64encode(script.encode("utf-8", "surrogateescape")).decode()


def for_any_shell(argv: Sequence[str]) -> str:
    """Return *argv* as a command line that every login shell understands."""
    line = shlex.join(argv)
    if _SPECIAL_IN_CSH.search(line) is None:
        return line
    return shlex.join(["sh", "-c", RUN_ENCODED, encoded(f"exec {line}")])
