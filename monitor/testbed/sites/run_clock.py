"""The clock of one run at the sites, so that stages come out as drawn and not only their slow steps.

A stage of a probe is more than the step that the weather slows down: sessions are opened before it, checksums
are taken after it. Were every step as slow as drawn from its own beginning, each stage would be longer than
drawn by all of that. Hence two corrections, both for runs with a label only:

- A step begins, for the weather, when the one before it was due to end (its *credit*).
- A step ends earlier by what usually follows it in its stage (its *reserve*), which is learned from run to
  run. It counts as ended when it was due, so that what is given here is taken there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from monitor.testbed.sites.programs import LAUNCHERS_MECHANISMS

LONGEST_CREDIT_SECONDS = 1.0
LONGEST_RESERVE_SECONDS = 0.5
_FIRST_RESERVE_SECONDS = 0.15
_LEARNING_RATE = 0.2
_TRAILING_SHARE = 0.6  # of what lies between two steps; the rest belongs to the later stage


class Reserves:
    """How long, in seconds, the stage of a mechanism usually goes on after its slow step."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(lambda: _FIRST_RESERVE_SECONDS)

    def after(self, mechanism: str) -> float:
        return self._seconds[mechanism]

    def learn(self, mechanism: str, seconds: float) -> None:
        """Take note of a run that began its next step *seconds* after one of *mechanism* had ended."""
        bounded = min(max(0.0, seconds * _TRAILING_SHARE), LONGEST_RESERVE_SECONDS)
        self._seconds[mechanism] += _LEARNING_RATE * (bounded - self._seconds[mechanism])


@dataclass(frozen=True)
class Step:
    """A slow step of a run that has ended; for the weather the next one begins at *due_at*."""

    mechanism: str
    ended_at: float
    due_at: float


@dataclass
class RunClock:
    """What the sites know about one run; times are those of the event loop's clock."""

    last: Step | None = None
    logged_in: set[int] = field(default_factory=set)  # sites
    computed_at: int | None = None  # site
    at_work: dict[Path, int] = field(default_factory=dict)  # where programs say what they do -> their site
    has_compiled: bool = False  # once was slow enough: the weather knows stages, not programs

    def computed_where(self) -> int | None:
        """The site at which it computed. Its result may be on its way before its session there is over."""
        computing = (site for said, site in self.at_work.items() if said_in(said) in LAUNCHERS_MECHANISMS)
        return next(computing, self.computed_at)

    def credit_seconds(self, now: float) -> float:
        """How much of a step that begins at *now* has passed already; less than nothing if it comes early."""
        if self.last is None:
            return 0.0
        return min(max(now - self.last.due_at, -LONGEST_RESERVE_SECONDS), LONGEST_CREDIT_SECONDS)

    def step_ended(
        self, mechanism: str, reserves: Reserves, *, began: float, planned: float, now: float
    ) -> None:
        """A step that began at *began* has ended at *now*; several sites may take part in one.

        The weather let go of it at *planned*, but real work may have taken longer.
        """
        if self.last is not None and self.last.mechanism != mechanism:
            reserves.learn(self.last.mechanism, began - self.last.ended_at)
        self.has_compiled = self.has_compiled or mechanism == "compile"
        self.last = Step(mechanism, now, max(now, planned + reserves.after(mechanism)))


def said_in(file: Path) -> str:
    """The slow step that a program took last, as it noted in *file*; empty if none."""
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return ""


def planned_seconds(mechanism: str, seconds: Mapping[str, float]) -> float:
    """How long after its beginning the weather lets go of a session whose last slow step was *mechanism*."""
    waited = max(0.0, seconds.get("queue", 0.0)) if mechanism == "compute" else 0.0
    return waited + seconds.get(mechanism, 0.0)
