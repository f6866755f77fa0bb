"""Watch one program from a thread of the reporter, in place of a guardian.

The pipes have the protocol of ``guardian.py``. A watcher ends only the program's process group, but needs no
Python process of its own.
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
    """Return whether one call can wait for a process and a pipe (from Linux 5.3 and Python 3.9 on)."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def watch(program: subprocess.Popen[bytes], control: int, status: int, grace_seconds: float) -> None:
    """Start a thread that ends *program* at a byte on *control*.

    The thread sends SIGTERM and, after *grace_seconds*, SIGKILL. It writes to *status* how the program ended.

    Raises OSError if no descriptor or no thread is left.
    """
    process = os.pidfd_open(program.pid)
    arguments = (program, process, control, status, grace_seconds, time.monotonic())
    try:
        threading.Thread(target=_watch, args=arguments, name=f"watch {program.pid}", daemon=True).start()
    except RuntimeError as error:
        os.close(process)
        raise OSError(errno.EAGAIN, str(error)) from error


def _watch(
    program: subprocess.Popen[bytes],
    process: int,
    control: int,
    status: int,
    grace_seconds: float,
    began: float,
) -> None:
    try:
        if not _readable(process, control):
            _end(program.pid, process, grace_seconds)
        returncode = program.wait()
        how = f"exit {returncode}" if returncode >= 0 else f"signal {-returncode}"
        os.write(status, f"{how} {time.monotonic() - began:.6f}\n".encode())
    finally:
        for descriptor in (process, control, status):
            os.close(descriptor)


def _end(pid: int, process: int, grace_seconds: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)
        if _readable(process, seconds=grace_seconds):
            return


def _readable(wanted: int, other: int | None = None, *, seconds: float | None = None) -> bool:
    """Wait until *wanted* or *other* is readable, at most *seconds*; return whether *wanted* is readable."""
    poller = select.poll()  # select() cannot watch a descriptor above 1023
    for descriptor in (wanted, other):
        if descriptor is not None:
            poller.register(descriptor, select.POLLIN)
    return wanted in dict(poller.poll(None if seconds is None else seconds * 1000))
