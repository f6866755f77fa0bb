"""Run a server in the foreground until its context ends."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from monitor.testbed.errors import NotServing
from reporters import process
from reporters.error_lines import tail

START_SECONDS = 60.0
_POLL_SECONDS = 0.02


@contextlib.contextmanager
def serving(
    argv: Sequence[str],
    *,
    ready: Callable[[], bool],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: Path | None = None,
) -> Iterator[process.Running]:
    """Run *argv*, with *env* added to the environment, until the context ends; enter once *ready* is true.

    A server that a signal ends before it is ready is started once more: some servers occasionally crash while
    they start their threads.

    Raises:
        NotServing: the server ended, or was not ready in time; the message has the end of its output and of
            *log*.
        reporters.process.ProgramMissing: the program does not exist.
    """
    with contextlib.ExitStack() as stack:
        for may_crash in (True, False):
            running = stack.enter_context(
                process.start(argv, env={**os.environ, **(env or {})}, cwd=str(cwd) if cwd else None)
            )
            if _comes_up(running, ready):
                break
            done = running.poll()
            if done is None or done.returncode >= 0 or not may_crash:
                ended = (
                    f"was not ready after {START_SECONDS:g} s"
                    if done is None
                    else f"ended with status {done.returncode}"
                )
                output = (done.stderr + done.stdout if done else "") + _text(log)
                raise NotServing(f"{argv[0]} {ended}: {tail(output).strip() or 'no output'}")
        yield running


def _comes_up(running: process.Running, ready: Callable[[], bool]) -> bool:
    """Wait until the server is ready, has ended, or the deadline has passed; return whether it is ready."""
    until = time.monotonic() + START_SECONDS
    while not ready():
        if running.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def listens(address: str, port: int) -> bool:
    """Return whether connections to *port* are accepted."""
    try:
        socket.create_connection((address, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def free_port(address: str) -> int:
    """Return a free TCP port of *address* outside the ephemeral range.

    An ephemeral port could be taken by another connection before the server has started.

    Raises:
        NotServing: each of many random ports was in use.
    """
    for port in random.SystemRandom().sample(_PORTS, _TRIES):
        with contextlib.suppress(OSError), socket.create_server((address, port)):
            return port
    raise NotServing(f"{address}: {_TRIES} ports from {_PORTS[0]} to {_PORTS[-1]} are all in use")


def _first_ephemeral_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 32768


_TRIES = 100
_PORTS = range(10_000, max(_first_ephemeral_port(), 20_000))


def _text(log: Path | None) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log is not None and log.exists() else ""
