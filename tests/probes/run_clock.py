"""A clock for the time limit of a run, so that a test decides at which stage the limit is reached."""

from __future__ import annotations

import time


class RunClock:
    """The monotonic clock of one run, which a test can set forward. The run starts when the clock is created.

    A short time limit would be reached in any stage on a busy machine; a long one that is set forward at the
    beginning of a stage is reached in that stage.
    """

    def __init__(self, limit_seconds: float) -> None:
        self._end = time.monotonic() + limit_seconds
        self._offset_seconds = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._offset_seconds

    def leave(self, seconds: float) -> None:
        """Set the clock forward until only *seconds* are left of the time limit."""
        self._offset_seconds = max(0.0, self._end - seconds - time.monotonic())
