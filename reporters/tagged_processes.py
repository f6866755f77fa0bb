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
_EXITING, _KERNEL_THREAD = 0x4, 0x200000  # flags in /proc/PID/stat
_CHASES = 200  # looks at the newest process after a scan that may have missed one
_UNCLEAR_SECONDS = 2.0  # of scans without a hit that may have missed a process
_PREFIX = f"{VARIABLE}=".encode()


def life() -> str:
    """Return the life of this process; empty on systems without ``/proc``."""
    start = _start_time(os.getpid())
    return f"{_namespace()}-{os.getpid()}-{start}" if start else ""


def is_over(other_life: str) -> bool:
    """Return whether the process of *other_life* has ended; False if it cannot be seen from here."""
    namespace, _, rest = other_life.partition("-")
    pid, _, start = rest.partition("-")
    if not (namespace and pid.isdigit() and start and namespace == _namespace()):
        return False
    try:
        return _start_time(int(pid)) != start
    except OSError:  # such as too many open files
        return False


def kill_tagged(is_wanted: Callable[[str], bool]) -> int:
    """Kill this user's processes whose tag *is_wanted*, until none is left; return how many were killed."""
    search = _Search(is_wanted)
    began = last_hit_at = time.monotonic()
    clear_scans = 0  # one may have missed a process that was forked as the process ids began again
    while clear_scans < 2:
        has_hit, is_complete = search.scan()
        has_hit = has_hit or (not is_complete and search.chase())
        now = time.monotonic()
        last_hit_at = now if has_hit else last_hit_at
        if now > began + GIVE_UP_SECONDS:
            break
        is_clear = not has_hit and (is_complete or now > last_hit_at + _UNCLEAR_SECONDS)
        clear_scans = clear_scans + 1 if is_clear else 0
    return len(search.killed)


def is_any_tagged(is_wanted: Callable[[str], bool]) -> bool:
    """Return whether a process of this user has a tag that *is_wanted*; one look, which may miss some."""
    for pid in _newest_first():
        with contextlib.suppress(OSError):  # it has ended, or is protected
            if os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116  # called for every process
                continue
            tag = _tag(_environment(pid))
            if tag and is_wanted(tag):
                return True
    return False


class _Search:
    """Repeated scans for tagged processes.

    A process that forks and exits, again and again, ends before a scan reaches it. But its newest child has
    the highest process id until the ids begin again, so the scan begins with that, and it is incomplete if a
    process ended meanwhile.
    """

    def __init__(self, is_wanted: Callable[[str], bool]) -> None:
        self._is_wanted = is_wanted
        self._ended: set[int] = set()  # zombies stay in /proc
        self._others: set[int] = set()  # later scans need only look at the new ones
        self.killed: set[int] = set()

    def scan(self) -> tuple[bool, bool]:
        """Kill the processes found; return whether there was any, and whether the scan was complete."""
        has_hit, is_complete = False, True
        for pid in _newest_first():
            if pid in self._others:
                continue
            try:
                is_hit = self._kill(pid)
            except (ProcessLookupError, FileNotFoundError):
                is_complete = is_complete and pid in self._ended
                self._ended.add(pid)
                continue
            except OSError:  # another user's meanwhile, or protected
                is_hit = False
            if is_hit:
                self.killed.add(pid)
                has_hit = True
            else:
                self._others.add(pid)
        return has_hit, is_complete

    def chase(self) -> bool:
        """Kill a process that forks and exits again and again; return whether there was one.

        The kernel tells the newest process id in an instant, while a listing takes as long as many forks.
        """
        for _ in range(_CHASES):
            with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended, or /proc is incomplete
                with open("/proc/loadavg", "rb") as file:  # noqa: PTH123
                    pid = int(file.read().split()[-1])
                if pid not in self._others and self._kill(pid):
                    self.killed.add(pid)
                    return True
        return False

    def _kill(self, pid: int) -> bool:
        """Send SIGKILL to *pid* if it is this user's and its tag *is_wanted*; return whether it was.

        Raises FileNotFoundError or ProcessLookupError if *pid* has ended, or may be about to end.
        """
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116  # called for every process
            if _flags(pid) & _EXITING:  # its files belong to root then
                raise ProcessLookupError
            return False
        with _handle(pid) as handle:
            try:
                environment = _environment(pid)
            except PermissionError:
                if _flags(pid) & _EXITING:  # Linux 6.18 lets only root read its environment then
                    raise ProcessLookupError from None
                raise
            if not environment and not _flags(pid) & _KERNEL_THREAD:  # it exits, or executes a program
                raise ProcessLookupError
            tag = _tag(environment)
            if not tag or not self._is_wanted(tag):
                return False
            if handle is None:
                os.kill(pid, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            return True


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


def _newest_first() -> list[int]:
    """Return the ids of all processes but this one, in descending order."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208  # thousands of names, of which few become paths
    except OSError:
        return []
    return sorted((int(name) for name in names if name.isdigit() and int(name) != os.getpid()), reverse=True)


def _environment(pid: int) -> bytes:
    with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
        return file.read()


def _tag(environment: bytes) -> str:
    tags = [text[len(_PREFIX) :] for text in environment.split(b"\0") if text.startswith(_PREFIX)]
    return tags[-1].decode(errors="replace") if tags else ""


def _namespace() -> str:
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))  # noqa: PTH115
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """Return the start of *pid* in ticks since the boot; empty if there is no such process, or a zombie."""
    try:
        fields = _stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _flags(pid: int) -> int:
    """Return the kernel's flags of *pid*. Raises FileNotFoundError or ProcessLookupError if it has ended."""
    return int(_stat(pid)[6])


def _stat(pid: int) -> list[bytes]:
    """Return the fields of ``/proc/PID/stat`` after the name of the program."""
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        return file.read().rpartition(b")")[2].split()
