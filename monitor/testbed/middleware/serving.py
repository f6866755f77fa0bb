"""Run a server in the foreground until its context ends."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from monitor.testbed.errors import NotServing
from reporters import process
from reporters.complaints import tail

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

    Raises:
        NotServing: it ended, or was not ready in time; with the end of what it and its *log* said.
        reporters.process.ProgramMissing: there is no such program.
    """
    with process.start(argv, env={**os.environ, **(env or {})}, cwd=str(cwd) if cwd else None) as running:
        until = time.monotonic() + START_SECONDS
        while not ready():
            done = running.poll()
            if done is not None or time.monotonic() > until:
                ended = "was not ready in time" if done is None else f"ended with status {done.returncode}"
                said = (done.stderr + done.stdout if done else "") + _text(log)
                raise NotServing(f"{argv[0]} {ended}: {tail(said).strip() or 'it said nothing'}")
            time.sleep(_POLL_SECONDS)
        yield running


def listens(address: str, port: int) -> bool:
    """Whether something accepts connections there."""
    try:
        socket.create_connection((address, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def free_port(address: str) -> int:
    """A TCP port of *address* that nothing listens on now."""
    with socket.create_server((address, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _text(log: Path | None) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log is not None and log.exists() else ""
