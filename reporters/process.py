"""Run programs with a time limit and kill their whole process tree.

Every program runs under a guardian (``guardian.py``), a small process that ends the program and everything
the program started: at the time limit, when the program itself has ended, and when the reporter dies, even by
SIGKILL. A program that starts no other program, and ends by itself when the reporter is gone, may run without
a guardian (*guarded* false). Output is kept in bounded memory: its middle is cut.

Logins and launchers may print text before the program does. With *marker*, the program must first print the
line *marker* on stdout and on stderr; all output up to this line is discarded. If the line never comes, the
output is kept, because it tells why.

With *containment*, the program belongs to a run: it is found even if its guardian is killed, and it has the
run's limits if it is *limited* (``containment.py``).

Errors::

    ProcessError
    |-- ProgramMissing    the program does not exist or cannot be executed        permanent
    |-- TimedOut          the program ran longer than its limit and was stopped   temporary
    `-- GuardianLost      the guardian was killed, and the program with it        temporary
"""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType

from probes.grid import Completed
from reporters import spawning
from reporters.capture import Capture
from reporters.containment import Containment, tagged
from reporters.watcher import can_watch

GRACE_SECONDS = 1.0  # between SIGTERM and SIGKILL
CAPTURE_BYTES = 1024 * 1024  # kept of stdout, and the same of stderr
_STOP_SECONDS = GRACE_SECONDS + 15.0  # longer than the guardian itself tries
_DRAIN_SECONDS = 0.5  # for output after the guardian's end; only unkillable processes hold pipes longer
_CHUNK_BYTES = 65536


class ProcessError(Exception):
    """The base class of the errors of this module. A non-zero exit status is no error."""


class ProgramMissing(ProcessError):
    """The program does not exist or cannot be executed."""


class TimedOut(ProcessError):
    """The program ran longer than its limit. *partial* has the output of the program so far."""

    def __init__(self, program: str, limit_seconds: float, partial: Completed) -> None:
        super().__init__(f"{program} ran longer than {limit_seconds:g} s and was stopped")
        self.limit_seconds = limit_seconds
        self.partial = partial


class GuardianLost(ProcessError):
    """The guardian was killed, and the program with it."""


def run(
    argv: Sequence[str],
    *,
    timeout_seconds: float,
    input: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    guarded: bool = True,
    marker: str = "",
    containment: Containment | None = None,
    limited: bool = False,
) -> Completed:
    """Run *argv* to its end. The returncode is -n if signal n killed the program.

    The seconds in the result do not include the start of the guardian. The module describes the other
    arguments.

    Raises:
        ProgramMissing: the program does not exist or cannot be executed.
        TimedOut: the program ran longer than *timeout_seconds* and was stopped.
        GuardianLost: the guardian was killed, and the program with it.
    """
    with start(
        argv,
        input=input or "",
        env=env,
        cwd=cwd,
        guarded=guarded,
        marker=marker,
        containment=containment,
        limited=limited,
    ) as running:
        return running.wait(timeout_seconds)


def start(
    argv: Sequence[str],
    *,
    input: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    guarded: bool = True,
    marker: str = "",
    containment: Containment | None = None,
    limited: bool = False,
) -> Running:
    """Start *argv* and return at once. Without *input*, stdin stays open until ``close_input``.

    The module describes the other arguments.
    """
    return Running(
        argv,
        input=input,
        env=env,
        cwd=cwd,
        guarded=guarded,
        marker=marker,
        containment=containment,
        limited=limited,
    )


class Running:
    """A running program with all its child processes. As a context manager, it stops the program on exit."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        input: str | None,
        env: Mapping[str, str] | None,
        cwd: str | None,
        guarded: bool,
        marker: str,
        containment: Containment | None,
        limited: bool,
    ) -> None:
        self.program = argv[0]
        self._changed = threading.Condition()
        line = f"{marker}\n".encode() if marker else b""
        self._stdout, self._stderr = Capture(CAPTURE_BYTES, line), Capture(CAPTURE_BYTES, line)
        self._status = b""
        self._ended = False
        self._unsent = None if input is None else memoryview(input.encode("utf-8", "replace"))
        self._began = time.monotonic()
        self._containment, self._tag = containment, containment.tag() if containment else ""
        self._is_guarded = guarded or not can_watch()
        env = tagged(env, self._tag) if containment else env
        try:
            if self._is_guarded:
                adopt = partial(containment.adopt, limited=limited) if containment else None
                self._pipes = spawning.guarded(argv, env, cwd, GRACE_SECONDS, adopt)
            else:
                self._pipes = spawning.watched(argv, env, cwd, GRACE_SECONDS)
        except (OSError, ValueError) as error:  # no such directory, an argument with a NUL, too long
            raise ProgramMissing(f"cannot run {argv[0]}: {error}") from error
        self._pump = threading.Thread(target=self._follow, name=f"follow {self.program}", daemon=True)
        self._pump.start()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def output(self) -> str:
        """The stdout of the program so far."""
        with self._changed:
            return self._printed()

    def poll(self) -> Completed | None:
        """Return the result of the program, or None while it runs.

        Raises the errors of ``run`` except TimedOut.
        """
        with self._changed:
            return self._completed() if self._ended else None

    def wait(self, timeout_seconds: float) -> Completed:
        """Wait until the program ends and return its result; stop it after *timeout_seconds*.

        Raises the errors of ``run``.
        """
        with self._changed:
            in_time = self._changed.wait_for(lambda: self._ended, timeout_seconds)
        self.stop()
        with self._changed:
            if not in_time:
                raise TimedOut(self.program, timeout_seconds, self._partial())
            return self._completed()

    def wait_for_output(self, wanted: Callable[[str], bool], timeout_seconds: float) -> bool:
        """Wait until *wanted*, called with the stdout so far, is true; return the last result of *wanted*.

        Returns early if the program ends, and at the latest after *timeout_seconds*.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._ended or wanted(self._printed()), timeout_seconds)
            return wanted(self._printed())

    def close_input(self) -> None:
        """Close the program's stdin."""
        if self._unsent is None:
            self._pipes.stdin.close()

    def stop(self) -> None:
        """Stop the program and all processes that it started; return when no process is left."""
        with self._changed:
            if not self._ended:
                with contextlib.suppress(OSError):
                    os.write(self._pipes.control, b"s")
                if not self._changed.wait_for(lambda: self._ended, _STOP_SECONDS):
                    with contextlib.suppress(ProcessLookupError):
                        self._pipes.kill()
        self._pump.join(_STOP_SECONDS)

    def _printed(self) -> str:
        return self._stdout.text() if self._stdout.has_begun else ""

    def _partial(self) -> Completed:
        seconds = time.monotonic() - self._began
        return Completed(-1, self._stdout.text(), self._stderr.text(), seconds)

    def _completed(self) -> Completed:
        """Return the result that the guardian reported. Raises ProgramMissing or GuardianLost."""
        kind, _, rest = self._status.decode().partition("\n")[0].partition(" ")
        if kind in ("exit", "signal"):
            number, _, seconds = rest.partition(" ")
            returncode = int(number) if kind == "exit" else -int(number)
            return Completed(returncode, self._stdout.text(), self._stderr.text(), float(seconds))
        if kind == "missing":
            raise ProgramMissing(f"cannot run {self.program}: {os.strerror(int(rest))}")
        raise GuardianLost(f"the guardian of {self.program} is gone: {rest or 'it was killed'}")

    def _follow(self) -> None:
        """Write stdin and read the pipes until the program has ended. Runs in a thread."""
        pipes = self._pipes
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as ended:
            for pipe in (pipes.stdin, pipes.stdout, pipes.stderr):
                ended.callback(pipe.close)  # *stdin* may be closed already
            selector.register(pipes.status, selectors.EVENT_READ, self._take_status)
            selector.register(pipes.stdout.fileno(), selectors.EVENT_READ, self._stdout.add)
            selector.register(pipes.stderr.fileno(), selectors.EVENT_READ, self._stderr.add)
            if self._unsent is not None:
                os.set_blocking(pipes.stdin.fileno(), False)
                selector.register(pipes.stdin.fileno(), selectors.EVENT_WRITE)
            self._drain(selector)
        if self._containment and self._is_guarded:
            self._containment.settle(self._tag, self._status.decode())
        with self._changed:
            os.close(pipes.control)
            os.close(pipes.status)
            self._ended = True
            self._changed.notify_all()

    def _take_status(self, data: bytes) -> None:
        self._status += data

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Serve the pipes until all are closed, at most ``_DRAIN_SECONDS`` longer than the guardian lives."""
        until: float | None = None
        while selector.get_map():
            wait = None if until is None else until - time.monotonic()
            if wait is not None and wait <= 0:
                return
            for key, _ in selector.select(wait):
                if key.data is None:
                    self._feed(selector, key.fd)
                elif not self._take(selector, key) and key.fd == self._pipes.status:
                    until = time.monotonic() + _DRAIN_SECONDS
                    self._close_input(selector)

    def _take(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
        """Read the available data of one pipe; return False at the end of the file."""
        data = os.read(key.fd, _CHUNK_BYTES)
        if not data:
            selector.unregister(key.fd)
            return False
        with self._changed:
            key.data(data)
            self._changed.notify_all()
        return True

    def _feed(self, selector: selectors.BaseSelector, stdin: int) -> None:
        rest = self._unsent or memoryview(b"")
        try:
            rest = rest[os.write(stdin, rest[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # the program closed its stdin
            rest = rest[:0]
        self._unsent = rest
        if not rest:
            self._close_input(selector)

    def _close_input(self, selector: selectors.BaseSelector) -> None:
        if self._unsent is not None and not self._pipes.stdin.closed:
            selector.unregister(self._pipes.stdin.fileno())
            self._pipes.stdin.close()
