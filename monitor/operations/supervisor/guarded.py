"""Start a guard with its service, and talk to the guard."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from .service import Service

GUARD = Path(__file__).with_name("guard.py")


class Guarded:
    """A started service and its guard. When ``fileno`` is readable, call ``receive``.

    Attributes:
        pid: pid of the service, not of its guard; None until the guard has sent this pid.
        exit_status: a return code as in subprocess; None while the service runs, and if its guard was killed.
        has_ended: whether no process of the service is left.
    """

    def __init__(self, service: Service, log: IO[bytes], hold: Sequence[int] = ()) -> None:
        self.pid: int | None = None
        self.exit_status: int | None = None
        self.has_ended = False
        self._buffer = b""
        plan = {
            "argv": list(service.argv),
            "stop_signal": int(service.stop_signal),
            "grace_seconds": service.grace_seconds,
            "user": service.user,
            "hold": list(hold),
        }
        self._lifeline, theirs = socket.socketpair()
        with theirs:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), json.dumps(plan)],
                stdin=theirs.fileno(),
                stdout=log,
                stderr=subprocess.STDOUT,
                env=service.env,
                cwd=service.directory,
                pass_fds=[*hold, *(each.fileno() for each in service.inherited)],
                start_new_session=True,  # Ctrl-C in the terminal must reach the supervisor only
            )
        self._lifeline.setblocking(False)

    def fileno(self) -> int:
        return self._lifeline.fileno()

    def stop(self) -> None:
        """Have the guard send the stop signal; after ``grace_seconds`` of the service it sends SIGKILL."""
        self._order(b"s")

    def kill(self) -> None:
        """Have the guard kill all processes of the service now."""
        self._order(b"k")

    def _order(self, order: bytes) -> None:
        with contextlib.suppress(OSError):  # the guard has ended: ``receive`` reports it
            self._lifeline.sendall(order)

    def receive(self) -> None:
        """Read the guard's messages; does not block while the guard lives."""
        try:
            data = self._lifeline.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            kind, number = line.split()
            if kind == b"pid":
                self.pid = int(number)
            else:
                self.exit_status = int(number)
        if not data:
            self._collect()

    def _collect(self) -> None:
        """Wait for the guard to end. If the guard was killed, kill the service's process group."""
        if self.exit_status is None and self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._guard.wait()
        self._lifeline.close()
        self.has_ended = True
