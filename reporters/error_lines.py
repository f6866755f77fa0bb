"""Find the line of a program's stderr that gives the cause of a failure."""

from __future__ import annotations

import re

_TAIL_CHARACTERS = 4000
_REASON = re.compile(
    r"error|fail|denied|refused|reset by|cannot|could not|unable|no such|not found|no space|timed out|timeout"
    r"|not permitted|not allowed|invalid|exceeded|unreachable|closed by|broken pipe|killed|no route|busy"
    r"|mismatch",
    re.IGNORECASE,
)
# Banners, and ssh's note that a connection was closed which was never open.
_IRRELEVANT = re.compile(
    r"^(\*\*|@|Warning: (Permanently added|Identity file)|scp: Connection closed$|lost connection$|$)"
)


def decisive_line(stderr: str) -> str:
    """Return the first line that gives a reason, else the last line; empty for an empty text."""
    lines = [line.strip() for line in stderr.splitlines()]
    candidates = [line for line in lines if not _IRRELEVANT.search(line)]
    for line in candidates:
        if _REASON.search(line):
            return line
    return (candidates or [line for line in lines if line] or [""])[-1]


def tail(stderr: str) -> str:
    """Return the last ``_TAIL_CHARACTERS`` of *stderr*."""
    return stderr[-_TAIL_CHARACTERS:]
