"""The environment part of a report: the host on which the reporter runs."""

from __future__ import annotations

import ctypes
import functools
import platform

from reporters import process
from reporters.report import Environment

_TIMEX_BYTES = 1024  # struct timex has 208 on 64-bit Linux; all zero changes nothing
_TIME_ERROR = 5
_TOOL_SECONDS = 10.0


def environment() -> Environment:
    """Return host name, kernel, Python and the versions of the tools that the reporter uses.

    The tools are asked once by a process; its forks know the answers.
    """
    return Environment(
        hostname=platform.node(),
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        tools=dict(_tools()),
    )


@functools.lru_cache(maxsize=1)
def _tools() -> tuple[tuple[str, str], ...]:
    try:
        done = process.run(["ssh", "-V"], timeout_seconds=_TOOL_SECONDS, guarded=False)
    except process.ProcessError:
        return ()
    return (("ssh", (done.stderr or done.stdout).strip()),)


@functools.cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def clock_is_synchronised() -> bool:
    """Return whether the kernel reports a synchronised clock (by adjtimex); False except on Linux."""
    try:
        state: int = _c_library().adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (AttributeError, OSError):
        return False
    return 0 <= state < _TIME_ERROR
