"""A program and its arguments as one text, for those who take it apart again at a site."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Sequence

# A script for sh that runs the one that comes encoded as its $0.
RUN_ENCODED = 'eval "$(printf %s "$0" | base64 -d)"'
# The login shell may be csh, which no quotes keep from these two.
_SPECIAL_IN_CSH = re.compile(r"[\n!]")


def encoded(script: str) -> str:
    """*script* in letters, digits and ``+/=``, which nobody's quoting rules touch."""
    return base64.b64encode(script.encode("utf-8", "surrogateescape")).decode()


def for_any_shell(argv: Sequence[str]) -> str:
    """*argv* as a command line of every login shell."""
    line = shlex.join(argv)
    if _SPECIAL_IN_CSH.search(line) is None:
        return line
    return shlex.join(["sh", "-c", RUN_ENCODED, encoded(f"exec {line}")])
