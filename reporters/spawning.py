"""Start programs under a guardian (``guardian.py``) or under a watching thread (``watcher.py``).

One process of the reporter, the forker, forks all guardians. Two pipes connect the reporter with a guardian
or watcher: one for commands, one for the status. The functions raise the OSError and ValueError of
``subprocess.Popen``.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import marshal
import os
import pkgutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from reporters.tagged_processes import VARIABLE
from reporters.watcher import watch

_LENGTH, _ANSWER = struct.Struct("=Q"), struct.Struct("=i")  # as in guardian.py
# The forker waits for its code. At the end of the file the reporter is gone.
_READ_CODE = """\
import marshal, os
code = b""
while len(code) < {size}: code += os.read(0, {size} - len(code)) or os._exit(0)
exec(marshal.loads(code))
"""


@dataclass(frozen=True)
class Pipes:
    """The reporter's ends of the pipes of a started program.

    A byte on *control* stops the program. *status* says how the program ended, and ends with its guardian or
    watcher. *kill* is for a program that does not stop.
    """

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    control: int
    status: int
    kill: Callable[[], None]


def guarded(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | None,
    grace_seconds: float,
    adopt: Callable[[int], None] | None = None,
) -> Pipes:
    """Start a guardian that runs *argv*; *grace_seconds* pass between SIGTERM and SIGKILL.

    *adopt* is called with the process id of the guardian, which starts *argv* afterwards.
    """
    request = _request(argv, os.environ if env is None else env, cwd, grace_seconds)
    stdin, stdout, stderr, control, status = _open_pipes(5)
    passed_on = (stdin[0], stdout[1], stderr[1], control[0], status[1])
    kept = (stdin[1], stdout[0], stderr[0], control[1], status[0])
    try:
        guardian = _forker.fork(request, passed_on)
        if adopt is not None:
            adopt(guardian)
        with contextlib.suppress(BrokenPipeError):  # a guardian that was killed ends its status
            os.write(control[1], b"g")
    except BaseException:
        _close(*kept)
        raise
    finally:
        _close(*passed_on)
    return Pipes(
        os.fdopen(stdin[1], "wb", 0),
        os.fdopen(stdout[0], "rb", 0),
        os.fdopen(stderr[0], "rb", 0),
        control[1],
        status[0],
        functools.partial(os.kill, guardian, signal.SIGKILL),
    )


def watched(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, grace_seconds: float
) -> Pipes:
    """Start *argv* without a guardian; a thread watches the program. *grace_seconds* is as in ``guarded``."""
    control, status = _open_pipes(2)
    try:
        program = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            watch(program, control[0], status[1], grace_seconds)
        except OSError:
            program.kill()
            program.communicate()  # closes its pipes
            raise
    except BaseException:
        _close(*control, *status)
        raise
    if program.stdin is None or program.stdout is None or program.stderr is None:
        raise AssertionError("a pipe is missing")
    return Pipes(program.stdin, program.stdout, program.stderr, control[1], status[0], program.kill)


def _request(
    argv: Sequence[str], environment: Mapping[str, str], cwd: str | None, grace_seconds: float
) -> bytes:
    """Return a request for the forker. Raises the errors of ``subprocess.Popen`` that only it would name."""
    if cwd is not None:
        os.stat(cwd)  # noqa: PTH116
    words = [os.fsencode(word) for word in argv]
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    if any(b"\0" in text for text in (*words, *variables, *variables.values())):
        raise ValueError("embedded null byte")
    if any(b"=" in name for name in variables):
        raise ValueError("illegal environment variable name")
    return marshal.dumps((words, variables, None if cwd is None else os.fsencode(cwd), grace_seconds))


class _Forker:
    """The process that forks the guardians of this reporter. It starts with the first guardian."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[socket.socket, subprocess.Popen[bytes]] | None = None

    def fork(self, request: bytes, descriptors: Sequence[int]) -> int:
        """Return the process id of a new guardian."""
        with self._lock:
            if self._running is not None:
                try:
                    return _ask(self._running[0], request, descriptors)
                except ConnectionError:  # the process was killed
                    self.end()
            self._running = _start_forker()
            return _ask(self._running[0], request, descriptors)

    def end(self) -> None:
        if self._running is not None:
            requests, process = self._running
            requests.close()
            process.wait()
            self._running = None

    def leave(self) -> None:
        """Leave the process to the parent of this process, after a fork."""
        if self._running is not None:
            requests, process = self._running
            requests.close()
            process.returncode = 0  # else its destructor would warn that it runs
        self._running = None
        self._lock = threading.Lock()  # a thread of the parent may hold the other one


def _start_forker() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    code = _guardian_code()
    requests, theirs = socket.socketpair()
    try:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _READ_CODE.format(size=len(code)), str(os.getpid())],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name != VARIABLE},
                start_new_session=True,
            )
    except BaseException:
        requests.close()
        raise
    requests.sendall(code)
    return requests, process


def _ask(requests: socket.socket, request: bytes, descriptors: Sequence[int]) -> int:
    """Return the process id of a new guardian. Raises ConnectionError if the forker was killed."""
    socket.send_fds(requests, [_LENGTH.pack(len(request))], descriptors)
    requests.sendall(request)
    data = requests.recv(_ANSWER.size)
    if not data:
        raise ConnectionResetError
    answer = int(_ANSWER.unpack(data)[0])
    if answer < 0:
        raise OSError(-answer, os.strerror(-answer))
    return answer


_forker = _Forker()
atexit.register(_forker.end)
os.register_at_fork(after_in_child=_forker.leave)


@functools.lru_cache(maxsize=1)
def _guardian_code() -> bytes:
    # The code, not the path: the file may lie inside a zip archive. Compiled once, by the same Python.
    text = pkgutil.get_data("reporters", "guardian.py")
    if text is None:
        raise AssertionError("the loader of this package reads no files")
    return marshal.dumps(compile(text, "guardian.py", "exec"))


def _open_pipes(count: int) -> list[tuple[int, int]]:
    pipes: list[tuple[int, int]] = []
    try:
        while len(pipes) < count:
            pipes.append(os.pipe())
    except OSError:
        for pipe in pipes:
            _close(*pipe)
        raise
    return pipes


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
