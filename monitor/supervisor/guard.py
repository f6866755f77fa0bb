"""Runs one service and lets nothing of it survive. Started by ``guarded.py`` as a program of its own.

``python -I -S guard.py PLAN`` with PLAN in JSON: ``argv``, ``stop_signal``, ``grace_seconds``, ``user``
(uid and gid, or null) and ``hold`` (descriptors that stay open here, and only here, while the service lives).

Standard input is the lifeline, a socket to the supervisor. The guard says ``pid N`` when the service runs and
``exit N`` (as subprocess counts: negative for a signal) when nothing of it is left. The supervisor says
``s`` (stop: the stop signal, then SIGKILL after the grace) or ``k`` (kill now); when its end closes it is
gone, and so are we.

The guard adopts orphans (subreaper), so that a process that double-forks and calls setsid is found. Should
the guard itself be killed, the kernel kills the service (PDEATHSIG) and the supervisor its process group.
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
ORPHAN_GRACE_SECONDS = 5.0  # with the supervisor gone, somebody may want to start anew soon
STOPPING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    plan = json.loads(sys.argv[1])
    lifeline = socket.socket(fileno=os.dup(0))
    for descriptor in (lifeline.fileno(), *plan["hold"]):
        os.set_inheritable(descriptor, False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_signals()
    child = _start_service(plan)
    _say(lifeline, f"pid {child}\n")
    status = Guard(child, lifeline, wake, plan["stop_signal"], plan["grace_seconds"]).watch()
    _say(lifeline, f"exit {status}\n")


def _wake_on_signals() -> int:
    """A descriptor from which the number of each signal that arrives can be read."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGCHLD, *STOPPING_SIGNALS):
        signal.signal(number, lambda *_: None)
    return reading


def _start_service(plan: dict[str, Any]) -> int:
    """Returns its pid when it is itself: a signal sent before would meet our handlers and be lost."""
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
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # last: the kernel forgets it when the user changes
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
        """Wait until the child has ended, by itself or on demand; return how, when nothing of it is left."""
        while True:
            self._reap()
            if self.status is not None or self._is_due():
                return self._exterminate()
            timeout = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
            for source in select.select(self.sources, [], [], timeout)[0]:
                if source is self.lifeline:
                    self._hear_supervisor()
                elif set(os.read(self.wake, 4096)) & set(STOPPING_SIGNALS):
                    self._stop_within(self.grace_seconds)

    def _is_due(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _hear_supervisor(self) -> None:
        said = b""
        with contextlib.suppress(ConnectionError):
            said = self.lifeline.recv(64)
        if not said:
            self.sources.remove(self.lifeline)
            self._stop_within(min(self.grace_seconds, ORPHAN_GRACE_SECONDS))
        elif b"k" in said:
            self._stop_within(0.0)
        else:
            self._stop_within(self.grace_seconds)

    def _stop_within(self, seconds: float) -> None:
        """Ask the child to end, once; never lengthens a grace that is already running."""
        deadline = time.monotonic() + seconds
        if self.deadline is None:
            _send(self.child, self.stop_signal)
            self.deadline = deadline
        self.deadline = min(self.deadline, deadline)

    def _reap(self) -> None:
        """Collect everything that has ended."""
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
        """Kill whatever is left, until nothing is; return the status of the child."""
        while True:
            left = descendants(os.getpid())
            killed = [pid for pid in left if _send(pid, signal.SIGKILL)]
            if left and not killed:
                break  # somebody else's, by a setuid program: not ours to kill
            if self.status is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.child, signal.SIGKILL)  # all that can be found where there is no /proc
            try:
                self._note(*os.waitpid(-1, 0))
            except ChildProcessError:
                break
        return -signal.SIGKILL if self.status is None else self.status


def descendants(root: int) -> list[int]:
    """Every process below *root*, as /proc tells it; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib doubles the time to start
                parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(pid)
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - see above
    except FileNotFoundError:
        return []


def _send(pid: int, number: int) -> bool:
    """Whether *pid* is ours to signal; one that is gone already counts as signalled."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def _say(lifeline: socket.socket, text: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more: that is seen when reading
        lifeline.sendall(text.encode())


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the process group is all there is."""
    with contextlib.suppress(ImportError, AttributeError):
        import ctypes  # noqa: PLC0415 - some Pythons are built without

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
