"""Run one service and kill all of its processes at its end. ``guarded.py`` starts this file as a program.

``python -I -S guard.py PLAN`` with PLAN in JSON: ``argv``, ``stop_signal``, ``grace_seconds``, ``user``
(uid and gid, or null) and ``hold`` (descriptors that the guard, and not the service, keeps open).

Standard input is the lifeline, a socket to the supervisor. The guard sends ``pid N`` when the service runs
and ``exit N`` (a return code as in subprocess: negative for a signal) when no process of the service is left.
The supervisor sends ``s`` (stop: the stop signal, then SIGKILL after the grace) or ``k`` (kill now). When the
supervisor's end of the lifeline closes, the supervisor has ended, and the guard stops the service.

The guard is a subreaper: it becomes the parent of orphans, so it finds processes that double-fork and call
setsid. If the guard itself is killed, the kernel kills the service (PDEATHSIG), and the supervisor kills the
service's process group.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ORPHAN_GRACE_SECONDS = 5.0  # the grace if the supervisor has ended: a new one may be waiting to start
STOPPING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    plan = json.loads(sys.argv[1])
    lifeline = socket.socket(fileno=os.dup(0))
    for descriptor in (lifeline.fileno(), *plan["hold"]):
        os.set_inheritable(descriptor, False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_signals()
    child = _start_service(plan)
    _send_line(lifeline, f"pid {child}\n")
    status = Guard(child, lifeline, wake, plan["stop_signal"], plan["grace_seconds"]).watch()
    _send_line(lifeline, f"exit {status}\n")


def _wake_on_signals() -> int:
    """Return a descriptor from which the number of each arriving signal can be read."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGCHLD, *STOPPING_SIGNALS):
        signal.signal(number, lambda *_: None)
    return reading


def _start_service(plan: dict[str, Any]) -> int:
    """Start the service; return its pid once exec has succeeded or failed.

    Until its exec the child has the guard's signal handlers, which would swallow a stop signal.
    """
    ourselves = os.getpid()
    reading, closed_by_exec = os.pipe()
    child = os.fork()
    if child == 0:
        _become_service(plan, ourselves)
    os.close(closed_by_exec)
    os.read(reading, 1)
    os.close(reading)
    return child


def _become_service(plan: dict[str, Any], guard: int) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        if plan["user"] is not None:
            uid, gid = plan["user"]
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # last: a change of the user clears it
        if os.getppid() != guard:
            os._exit(1)
        for changed_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(changed_by_python, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(plan["argv"][0], plan["argv"])  # noqa: S606 - a list of words, no shell on purpose
    except OSError as error:
        os.write(2, f"cannot start {plan['argv'][0]}: {error}\n".encode())
    finally:
        os._exit(127)


class Guard:
    """Waits for the service *child* to end, for orders on *lifeline* and for signals on the pipe *wake*."""

    def __init__(
        self, child: int, lifeline: socket.socket, wake: int, stop_signal: int, grace_seconds: float
    ) -> None:
        self.child = child
        self.lifeline = lifeline
        self.wake = wake
        self.stop_signal = stop_signal
        self.grace_seconds = grace_seconds
        self.sources: list[Any] = [lifeline, wake]
        self.deadline: float | None = None
        self.status: int | None = None

    def watch(self) -> int:
        """Wait until no process of the service is left; return the exit status of *child*."""
        while True:
            self._reap()
            if self.status is not None or self._is_due():
                return self._exterminate()
            timeout = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
            for source in select.select(self.sources, [], [], timeout)[0]:
                if source is self.lifeline:
                    self._receive_order()
                elif set(os.read(self.wake, 4096)) & set(STOPPING_SIGNALS):
                    self._stop_within(self.grace_seconds)

    def _is_due(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _receive_order(self) -> None:
        order = b""
        with contextlib.suppress(ConnectionError):
            order = self.lifeline.recv(64)
        if not order:
            self.sources.remove(self.lifeline)
            self._stop_within(min(self.grace_seconds, ORPHAN_GRACE_SECONDS))
        elif b"k" in order:
            self._stop_within(0.0)
        else:
            self._stop_within(self.grace_seconds)

    def _stop_within(self, seconds: float) -> None:
        """Send the stop signal once; set the deadline for SIGKILL, or shorten a deadline that is set."""
        deadline = time.monotonic() + seconds
        if self.deadline is None:
            _send(self.child, self.stop_signal)
            self.deadline = deadline
        self.deadline = min(self.deadline, deadline)

    def _reap(self) -> None:
        """Collect the exit status of every ended child, among them adopted orphans."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                self._note(pid, status)

    def _note(self, pid: int, status: int) -> None:
        if pid == self.child:
            self.status = os.waitstatus_to_exitcode(status)

    def _exterminate(self) -> int:
        """Kill all descendants until no descendant is left; return the child's exit status."""
        while True:
            remaining = descendants(os.getpid())
            killed = [pid for pid in remaining if _send(pid, signal.SIGKILL)]
            if remaining and not killed:
                break  # setuid programs of other users: we have no permission
            if self.status is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(
                        self.child, signal.SIGKILL
                    )  # without /proc, the process group is all that can be found
            try:
                self._note(*os.waitpid(-1, 0))
            except ChildProcessError:
                break
        return -signal.SIGKILL if self.status is None else self.status


def descendants(root: int) -> list[int]:
    """Return the pids of all descendants of the process *root*, read from /proc; empty without /proc."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - importing pathlib doubles the start-up time
                parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(pid)
    pids: list[int] = []
    parents = [root]
    while parents:
        below = children.get(parents.pop(), [])
        pids += below
        parents += below
    return pids


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - see above
    except FileNotFoundError:
        return []


def _send(pid: int, number: int) -> bool:
    """Send signal *number* to *pid*; return False only if permission is denied, not if *pid* has ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def _send_line(lifeline: socket.socket, text: str) -> None:
    with contextlib.suppress(OSError):  # the supervisor has ended: the next read reports it
        lifeline.sendall(text.encode())


def _prctl(option: int, value: int) -> None:
    """Call prctl on Linux; do nothing elsewhere, where a guard finds only the service's process group."""
    with contextlib.suppress(ImportError, AttributeError):
        import ctypes  # noqa: PLC0415 - some Pythons are built without it

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
