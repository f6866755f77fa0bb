"""The server's time at the site, kept from one agent to the next while the host is up.

The steady clock is common to all processes between a boot and the next. So an agent that is started while the
server is away knows the server's time from the exchanges of the agent before.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from reporters.fields import Fields, Unfit
from reporters.remote.clock import ClockEstimate, ExchangeTimes, SiteClock, steady_seconds
from reporters.remote.state_directory import StateDirectory, StateError

FILE = "clock.json"
KEPT_SECONDS = 600.0
_BETTER = 4  # times: by drift, a bound of 20 ms has grown so much after five minutes
_MOST_SECONDS = 1e12


def steady_epoch() -> str:
    """Return what identifies the zero of the steady clock; empty if that cannot be told.

    It is the boot of the host, and the offsets that a container may have of its own.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    with contextlib.suppress(OSError, ValueError):
        boot += " " + " ".join(Path("/proc/self/timens_offsets").read_text(encoding="ascii").split())
    return boot if hasattr(time, "CLOCK_BOOTTIME") else ""


def is_worth_keeping(best: ClockEstimate, kept: ClockEstimate | None, steady: float) -> bool:
    """Return whether *best* is to replace *kept* on disk, which costs a flush, at the time *steady*."""
    if kept is None or best.at - kept.at >= KEPT_SECONDS:
        return True
    return not best.agrees_with(kept) or best.bound_at(steady) * _BETTER < kept.bound_at(steady)


class KeptClock(SiteClock):
    """A clock that begins with the estimate in *state*, if that is of *epoch*, and keeps its best there.

    A file that cannot be read counts as none, and one that cannot be written changes nothing: the next
    exchange tells the time.
    """

    def __init__(
        self,
        state: StateDirectory,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady_seconds,
        epoch: str | None = None,
    ) -> None:
        super().__init__(wall, steady)
        self._state, self._epoch = state, steady_epoch() if epoch is None else epoch
        self._keeping = threading.Lock()
        self._kept = self._read()
        if self._kept is not None:
            self._estimates.append(self._kept)

    def add(self, times: ExchangeTimes) -> None:
        super().add(times)
        best = self._best()
        if best is None or not self._epoch:
            return
        with self._keeping, contextlib.suppress(StateError):
            if is_worth_keeping(best, self._kept, self.steady()):
                document = {"offset": best.offset, "bound": best.bound, "at": best.at}
                self._state.write_object(FILE, {"epoch": self._epoch, **document})
                self._kept = best

    def _read(self) -> ClockEstimate | None:
        """Return the estimate on disk; None if there is none for this clock."""
        try:
            document = self._state.read_object(FILE)
            if document is None or not self._epoch:
                return None
            fields = Fields(document)
            if fields.text("epoch") != self._epoch:
                return None
            return ClockEstimate(
                fields.number("offset", minimum=-_MOST_SECONDS, maximum=_MOST_SECONDS),
                fields.number("bound", minimum=0.0, maximum=_MOST_SECONDS),
                fields.number("at", minimum=0.0, maximum=self.steady()),
            )
        except (StateError, Unfit):
            return None
