"""The places of a caller for downloads that cost seconds of processor: a few, over all web processes.

A place is an advisory lock of PostgreSQL, held by the session that answers. If the web process is killed,
PostgreSQL frees it.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack

from monitor.core.db.advisory_locks import AdvisoryLock, session_lock

AT_ONCE = 2  # of one caller


class _HeldPlace(threading.local):
    """The place that this thread holds."""

    def __init__(self) -> None:
        self.stack = ExitStack()


_held = _HeldPlace()


def take_place(caller: str) -> bool:
    """Take a free place of *caller* for this thread; return False if there is none."""
    for number in range(AT_ONCE):
        with ExitStack() as stack:
            if stack.enter_context(session_lock(AdvisoryLock.DOWNLOADS, of=f"{caller} {number}")):
                _held.stack = stack.pop_all()
                return True
    return False


def leave_place() -> None:
    """Free the place of this thread, if it holds one."""
    _held.stack.close()
