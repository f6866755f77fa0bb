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

START_SECONDS = 30.0
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
    """Run *argv*, with *env* added to the environment, until the context ends; enter it when *ready* holds.

    A server that a signal ends before it is ready is begun once more: some of them crash now and then while
    their threads begin.

    Raises:
        NotServing: it ended, or was not ready in time; with the end of what it and its *log* said.
        reporters.process.ProgramMissing: there is no such program.
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
                ended = "was not ready in time" if done is None else f"ended with status {done.returncode}"
                said = (done.stderr + done.stdout if done else "") + _text(log)
                raise NotServing(f"{argv[0]} {ended}: {tail(said).strip() or 'it said nothing'}")
        yield running


def _comes_up(running: process.Running, ready: Callable[[], bool]) -> bool:
    """Wait until it is *ready*, has ended, or time is over; whether it is."""
    until = time.monotonic() + START_SECONDS
    while not ready():
        if running.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def listens(address: str, port: int) -> bool:
    """Whether something accepts connections there."""
    try:
        socket.create_connection((address, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def free_port(address: str) -> int:
    """A TCP port of *address* that nothing listens on now.

    None of those that the kernel gives to whoever connects, or listens on any: it would be taken before its
    server has started, on a machine that has much to do. Raises NotServing where all are taken.
    """
    for port in random.SystemRandom().sample(_OUR_PORTS, _TRIES):
        with contextlib.suppress(OSError), socket.create_server((address, port)):
            return port
    raise NotServing(f"{address}: {_TRIES} ports from {_OUR_PORTS[0]} to {_OUR_PORTS[-1]} are all taken")


def _kernels_first_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 32768


_TRIES = 100
_OUR_PORTS = range(10_000, max(_kernels_first_port(), 20_000))


def _text(log: Path | None) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log is not None and log.exists() else ""
