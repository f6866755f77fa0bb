"""Find and kill processes by a tag in their environment, whatever their parent, session and process group.

A *tag* names the reporter's process (its *life*), the run and the program: ``LIFE.RUN.PROGRAM``. A life is
``NAMESPACE-PID-START``: the namespace of process ids, the process id, and the kernel's start time of the
process; so a later reporter can tell that a life is over.

A process hides from this search if it executes a program with another environment after its guardian was
killed. Only a cgroup holds such a process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator

VARIABLE = "GRIDCAST_RUN"
GIVE_UP_SECONDS = 10.0  # of processes that cannot be killed, such as those stuck in the kernel
_PAUSE_SECONDS = 0.01
_PREFIX = f"{VARIABLE}=".encode()


def life() -> str:
    """Return the life of this process; empty on systems without ``/proc``."""
    start = _start_time(os.getpid())
    return f"{_namespace()}-{os.getpid()}-{start}" if start else ""


def is_over(other_life: str) -> bool:
    """Return whether the process of *other_life* has ended; False if it cannot be seen from here."""
    namespace, _, rest = other_life.partition("-")
    pid, _, start = rest.partition("-")
    return (
        bool(namespace and pid.isdigit() and start)
        and namespace == _namespace()
        and (_start_time(int(pid)) != start)
    )


def kill_tagged(is_wanted: Callable[[str], bool]) -> int:
    """Kill this user's processes whose tag *is_wanted*, until none is left; return how many were killed."""
    killed: set[int] = set()
    until = time.monotonic() + GIVE_UP_SECONDS
    while True:
        alive = [pid for pid in _own_processes() if _kill(pid, is_wanted)]
        killed.update(alive)
        if not alive or time.monotonic() > until:
            return len(killed)
        time.sleep(_PAUSE_SECONDS)  # the kernel needs a moment to end them


def _kill(pid: int, is_wanted: Callable[[str], bool]) -> bool:
    """Send SIGKILL to *pid* if it is alive and its tag *is_wanted*; return whether it was."""
    with contextlib.suppress(OSError), _handle(pid) as handle:
        tag = _tag(pid)
        if tag and is_wanted(tag):
            if handle is None:
                os.kill(pid, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            return True
    return False


@contextlib.contextmanager
def _handle(pid: int) -> Iterator[int | None]:
    """Yield a descriptor of the process, so that no other process gets its signal; None before Linux 5.3."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _own_processes() -> Iterator[int]:
    user, this = os.geteuid(), os.getpid()
    try:
        names = os.listdir("/proc")  # noqa: PTH208  # thousands of names, of which few become paths
    except OSError:
        return
    for name in names:
        if name.isdigit() and int(name) != this:
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == user:  # noqa: PTH116
                    yield int(name)


def _tag(pid: int) -> str:
    with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
        variables = file.read().split(b"\0")
    tags = [text[len(_PREFIX) :] for text in variables if text.startswith(_PREFIX)]
    return tags[-1].decode(errors="replace") if tags else ""


def _namespace() -> str:
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))  # noqa: PTH115
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """Return the start of *pid* in ticks since the boot; empty if there is no such process, or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
