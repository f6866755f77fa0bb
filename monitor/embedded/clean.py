"""Removes a directory of state and all that belongs to it elsewhere: ``python -m monitor.embedded.clean``.

Stops the supervisor that is at work there first. Only a directory that we made is removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from monitor import env
from monitor.supervisor import lock

from . import EmbeddedError, NotOurs, places

STOP_SECONDS = 60.0
_POLL_SECONDS = 0.05


class StillRunning(EmbeddedError):
    """The supervisor does not end."""


def clean(var: Path) -> None:
    """Stop what runs, then remove *var*, its sockets and what was relocated.

    Raises:
        NotOurs: *var* is not a directory that we made, by its mark.
        StillRunning: the supervisor was asked to stop and did not.
    """
    if var.exists() and not env.has_marker(var):
        raise NotOurs(
            f"{var} was not made by us (it has no {env.VAR_MARKER}); remove it by hand if that is meant"
        )
    _remove(var)


def _remove(var: Path) -> None:
    _stop_supervisor(var / "run")
    for sockets in places.socket_directories(var):
        shutil.rmtree(sockets, ignore_errors=True)
    shutil.rmtree(places.relocated(var), ignore_errors=True)
    with contextlib.suppress(OSError):
        places.RELOCATED.rmdir()  # the last one turns off the light
    if var.exists():
        shutil.rmtree(var)


def _stop_supervisor(run: Path) -> None:
    pid = lock.holder(run)
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while not lock.is_free(run):
        if time.monotonic() > deadline:
            raise StillRunning(f"the supervisor {pid} of {run} does not end")
        time.sleep(_POLL_SECONDS)


def main() -> int:
    var = env.var_directory()
    remove = _remove if var == env.ROOT / "var" else clean  # that one is ours by its place
    try:
        remove(var)
    except (EmbeddedError, OSError) as error:
        sys.stderr.write(f"cannot clean {var}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
