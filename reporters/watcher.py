"""Watches one program from a thread of the reporter: a guardian's work, where there is one process to end.

It tells the same lines over the same pipes as ``guardian.py``, and costs no Python of its own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import threading
import time


def can_watch() -> bool:
    """Whether this system lets us wait for a process and for a pipe at once (Linux 5.3, Python 3.9)."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def watch(program: subprocess.Popen[bytes], told: int, status: int, grace_seconds: float) -> None:
    """From now on: end *program* and its group at a byte over *told*; say over *status* how it ended.

    Raises OSError, and nothing is watched: there is no descriptor left, or no thread.
    """
    process = os.pidfd_open(program.pid)
    work = (program, process, told, status, grace_seconds, time.monotonic())
    try:
        threading.Thread(target=_watch, args=work, name=f"watch {program.pid}", daemon=True).start()
    except RuntimeError as error:
        os.close(process)
        raise OSError(errno.EAGAIN, str(error)) from error


def _watch(
    program: subprocess.Popen[bytes], process: int, told: int, status: int, grace_seconds: float, began: float
) -> None:
    try:
        if not _readable(process, told):
            _end(program.pid, process, grace_seconds)
        returncode = program.wait()
        how = f"exit {returncode}" if returncode >= 0 else f"signal {-returncode}"
        os.write(status, f"{how} {time.monotonic() - began:.6f}\n".encode())
    finally:
        for descriptor in (process, told, status):
            os.close(descriptor)


def _end(pid: int, process: int, grace_seconds: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)
        if _readable(process, seconds=grace_seconds):
            return


def _readable(wanted: int, other: int | None = None, *, seconds: float | None = None) -> bool:
    """Wait until one of them can be read, or the time is over; whether *wanted* can."""
    poller = select.poll()  # select() cannot watch a descriptor above 1023
    for descriptor in (wanted, other):
        if descriptor is not None:
            poller.register(descriptor, select.POLLIN)
    return wanted in dict(poller.poll(None if seconds is None else seconds * 1000))
