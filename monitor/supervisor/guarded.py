"""A service behind its guard, seen from the supervisor's side."""

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
    """A running service. ``fileno`` turns readable when there is something to ``hear``.

    Attributes:
        pid: of the service itself (not of its guard); None until the guard has said it.
        exit_status: as subprocess counts them, once it ended; None when the guard was killed.
        gone: nothing of the service is left.
    """

    def __init__(self, service: Service, log: IO[bytes], hold: Sequence[int] = ()) -> None:
        self.pid: int | None = None
        self.exit_status: int | None = None
        self.gone = False
        self._heard = b""
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
                pass_fds=hold,
                start_new_session=True,  # Ctrl-C at the terminal is for the supervisor alone
            )
        self._lifeline.setblocking(False)

    def fileno(self) -> int:
        return self._lifeline.fileno()

    def stop(self) -> None:
        """Ask it to stop; SIGKILL after its grace."""
        self._order(b"s")

    def kill(self) -> None:
        """SIGKILL to everything of it, now."""
        self._order(b"k")

    def _order(self, order: bytes) -> None:
        with contextlib.suppress(OSError):  # a guard that is gone is noticed by ``hear``
            self._lifeline.sendall(order)

    def hear(self) -> None:
        """Take in what the guard has said; never blocks while the guard lives."""
        try:
            said = self._lifeline.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            said = b""
        self._heard += said
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            what, number = line.split()
            if what == b"pid":
                self.pid = int(number)
            else:
                self.exit_status = int(number)
        if not said:
            self._bury()

    def _bury(self) -> None:
        """The guard has ended. Where it was killed its service may not know yet."""
        if self.exit_status is None and self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._guard.wait()
        self._lifeline.close()
        self.gone = True
