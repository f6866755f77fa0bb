"""What a program's stderr says, in one line."""

from __future__ import annotations

import re

_TAIL_CHARACTERS = 4000
_SAYS_WHY = re.compile(
    r"error|fail|denied|refused|reset by|cannot|could not|unable|no such|not found|no space|timed out|timeout"
    r"|not permitted|not allowed|invalid|exceeded|unreachable|closed by|broken pipe|killed|no route|busy"
    r"|mismatch",
    re.IGNORECASE,
)
# What is said beside the point: banners, and that a connection that never was is now closed.
_BESIDE_THE_POINT = re.compile(
    r"^(\*\*|@|Warning: (Permanently added|Identity file)|scp: Connection closed$|lost connection$|$)"
)


def decisive_line(stderr: str) -> str:
    """The first line that says what went wrong, else the last line of all; empty for an empty text."""
    lines = [line.strip() for line in stderr.splitlines()]
    candidates = [line for line in lines if not _BESIDE_THE_POINT.search(line)]
    for line in candidates:
        if _SAYS_WHY.search(line):
            return line
    return (candidates or [line for line in lines if line] or [""])[-1]


def tail(stderr: str) -> str:
    """The end of *stderr*, verbatim."""
    return stderr[-_TAIL_CHARACTERS:]
