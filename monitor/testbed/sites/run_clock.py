"""The clock of one run at the sites: makes whole stages, not only their slow steps, take the drawn time.

The weather slows down one step of a stage; sessions are opened before it, checksums are computed after it. If
every step took the drawn time from its own beginning, each stage would be longer than drawn. Two corrections,
for runs with a label only:

- *Credit*: the time of a step counts from the due end of the step before it.
- *Reserve*: a step ends earlier by the time that usually follows it in its stage, which is learned from
  earlier runs. The next step's credit counts from the due end, so the stages together take the drawn time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from monitor.testbed.sites.programs import LAUNCHER_MECHANISMS

LONGEST_CREDIT_SECONDS = 1.0
LONGEST_RESERVE_SECONDS = 0.5
_FIRST_RESERVE_SECONDS = 0.15
_LEARNING_RATE = 0.2
_TRAILING_SHARE = 0.6  # of the time between two steps; the rest belongs to the later stage


class Reserves:
    """The usual seconds between a mechanism's slow step and the end of its stage."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(lambda: _FIRST_RESERVE_SECONDS)

    def after(self, mechanism: str) -> float:
        return self._seconds[mechanism]

    def learn(self, mechanism: str, seconds: float) -> None:
        """Learn from a run whose next step began *seconds* after the end of that of *mechanism*."""
        bounded = min(max(0.0, seconds * _TRAILING_SHARE), LONGEST_RESERVE_SECONDS)
        self._seconds[mechanism] += _LEARNING_RATE * (bounded - self._seconds[mechanism])


@dataclass(frozen=True)
class Step:
    """An ended slow step of a run; the time of the next one counts from *due_at*."""

    mechanism: str
    ended_at: float
    due_at: float


@dataclass
class RunClock:
    """The state of one run at all sites; times are those of the event loop's clock."""

    last: Step | None = None
    logged_in: set[int] = field(default_factory=set)  # sites
    computed_at: int | None = None  # site
    paced_files: dict[Path, int] = field(default_factory=dict)  # of running sessions -> their site
    has_compiled: bool = False  # only the first compilation of a run is slow

    def compute_site(self) -> int | None:
        """Return the site of the computation; its result may travel before its session has ended."""
        computing = (
            site for file, site in self.paced_files.items() if paced_mechanism(file) in LAUNCHER_MECHANISMS
        )
        return next(computing, self.computed_at)

    def credit_seconds(self, now: float) -> float:
        """Return by how much a step beginning at *now* is late; negative if it is early."""
        if self.last is None:
            return 0.0
        return min(max(now - self.last.due_at, -LONGEST_RESERVE_SECONDS), LONGEST_CREDIT_SECONDS)

    def step_ended(
        self, mechanism: str, reserves: Reserves, *, began: float, planned: float, now: float
    ) -> None:
        """Record a step from *began* to *now*; several sites may take part in one step.

        The weather ended at *planned*, but the real work may have taken longer.
        """
        if self.last is not None and self.last.mechanism != mechanism:
            reserves.learn(self.last.mechanism, began - self.last.ended_at)
        self.has_compiled = self.has_compiled or mechanism == "compile"
        self.last = Step(mechanism, now, max(now, planned + reserves.after(mechanism)))


def paced_mechanism(file: Path) -> str:
    """Return the mechanism of a session's last slow step, which its programs write to *file*."""
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return ""


def planned_seconds(mechanism: str, seconds: Mapping[str, float]) -> float:
    """Return the planned seconds of a session whose last slow step was *mechanism*."""
    waited = max(0.0, seconds.get("queue", 0.0)) if mechanism == "compute" else 0.0
    return waited + seconds.get(mechanism, 0.0)
