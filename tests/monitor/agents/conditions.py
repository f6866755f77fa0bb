"""The conditions at a site, which the test changes while processes run: the wall clock, and a full disk."""

from __future__ import annotations

import resource
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path


class Conditions:
    """The conditions in *directory*: the file ``clock`` has the error of the wall clock in seconds, ``full``
    the size in bytes that no file of a process that starts now can exceed."""

    def __init__(self, directory: Path) -> None:
        self._clock, self._full = directory / "clock", directory / "full"

    def set_clock(self, error_seconds: float) -> None:
        draft = self._clock.with_suffix(".draft")
        draft.write_text(f"{error_seconds}", encoding="ascii")
        draft.replace(self._clock)

    def fill_disk(self, most_bytes: int | None) -> None:
        """Let processes that start from now on fail to write past *most_bytes* of a file; None: no limit."""
        if most_bytes is None:
            self._full.unlink(missing_ok=True)
        else:
            self._full.write_text(str(most_bytes), encoding="ascii")

    def limit_files(self) -> None:
        """Apply the limit to this process: a write beyond it fails as on a full disk, after a part of it."""
        if self._full.exists():
            most = int(self._full.read_text(encoding="ascii"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    def wall_seconds(self) -> float:
        return time.time() + (float(self._clock.read_text(encoding="ascii")) if self._clock.exists() else 0.0)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.wall_seconds() - time.time())
