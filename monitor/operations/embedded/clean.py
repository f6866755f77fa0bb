"""Remove a state directory and its files in other places: ``python -m monitor.operations.embedded.clean``.

A running supervisor is stopped first. Except for ``var`` of the checkout, only a directory with the marker
file of gridcast is removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from monitor.core import env
from monitor.operations.supervisor import lock

from . import EmbeddedError, NotOurs, places, purpose

STOP_SECONDS = 60.0
FORCE = "FORCE"  # the variable that permits to delete measurements
_POLL_SECONDS = 0.05


class HoldsMeasurements(EmbeddedError):
    """The directory is the state of a real grid."""


class StillRunning(EmbeddedError):
    """The supervisor does not end within the deadline."""


def clean(var: Path) -> None:
    """Stop the supervisor, then remove *var*, its sockets and its relocated data.

    Raises:
        NotOurs: *var* has no marker file.
        HoldsMeasurements: *var* belongs to ``make serve``, and the variable FORCE is not 1.
        StillRunning: the supervisor has not ended within the deadline.
    """
    if var.exists() and not env.has_marker(var):
        raise NotOurs(
            f"{var} was not created by gridcast (it has no {env.VAR_MARKER}); remove it by hand if intended"
        )
    _refuse_measurements(var)
    _remove(var)


def _refuse_measurements(var: Path) -> None:
    if purpose.current(var) == purpose.SERVE and os.environ.get(FORCE) != "1":
        raise HoldsMeasurements(
            f"{var} holds the measurements of `make serve`; make clean {FORCE}=1 deletes them for ever"
        )


def _remove(var: Path) -> None:
    _stop_supervisor(var / "run")
    for sockets in places.socket_directories(var):
        shutil.rmtree(sockets, ignore_errors=True)
    shutil.rmtree(places.relocation(var), ignore_errors=True)
    with contextlib.suppress(OSError):
        places.RELOCATED.rmdir()  # unless it has data of another state directory
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
            raise StillRunning(f"the supervisor {pid} of {run} has not ended after {STOP_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)


def main() -> int:
    try:
        var = env.var_directory()
    except env.InvalidVariable as error:
        sys.stderr.write(f"cannot clean: {error}\n")
        return 1
    try:
        if var == env.ROOT / "var":  # ours by its location, with or without marker
            _refuse_measurements(var)
            _remove(var)
        else:
            clean(var)
    except (EmbeddedError, OSError) as error:
        sys.stderr.write(f"cannot clean {var}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
