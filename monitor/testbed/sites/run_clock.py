"""The clock of one run at the sites: makes each whole stage, not only its slow step, take the drawn time.

The weather generator draws a time for each stage at random. The sites spend it in the *slow step* of the
stage, such as a transfer. But a stage also opens sessions before this step and computes checksums after it,
so the stage would take longer than drawn. For runs with a label (``series@slot``), two corrections shorten
the slow step:

- *Credit*: the seconds by which the step begins later than the previous stage was due to end. These seconds
  count as spent in the step. The credit is negative if the step begins early.
- *Reserve*: the seconds that usually pass between the end of this kind of step and the end of its stage. The
  reserves are learned from earlier runs.

A stage is due to end one reserve after the planned end of its slow step. The next credit counts from this due
time, so the stages together take the drawn time even if a reserve is wrong.
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
_TRAILING_SHARE = 0.6  # share of the time between two steps that belongs to the earlier stage


class Reserves:
    """The usual seconds between the end of a mechanism's slow step and the end of its stage."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(lambda: _FIRST_RESERVE_SECONDS)

    def after(self, mechanism: str) -> float:
        return self._seconds[mechanism]

    def learn(self, mechanism: str, seconds: float) -> None:
        """Update the reserve of *mechanism*.

        *seconds* passed in a run from the end of the mechanism's step to the begin of the next step.
        """
        bounded = min(max(0.0, seconds * _TRAILING_SHARE), LONGEST_RESERVE_SECONDS)
        self._seconds[mechanism] += _LEARNING_RATE * (bounded - self._seconds[mechanism])


@dataclass(frozen=True)
class Step:
    """A slow step that has ended. The stage is due to end at *due_at*; the next credit counts from then."""

    mechanism: str
    ended_at: float
    due_at: float


@dataclass
class RunClock:
    """The state of one run at all sites; times are by the event loop's clock."""

    last: Step | None = None
    logged_in: set[int] = field(default_factory=set)  # indexes of sites
    computed_at: int | None = None  # index of a site
    paced_files: dict[Path, int] = field(default_factory=dict)  # file of a session -> index of its site
    has_compiled: bool = False  # only the first compilation of a run is slow

    def compute_site(self) -> int | None:
        """Return the index of the site that computes or has computed; None if no site has computed yet.

        Results may travel before the session that computes has ended.
        """
        computing = (
            site for file, site in self.paced_files.items() if paced_mechanism(file) in LAUNCHER_MECHANISMS
        )
        return next(computing, self.computed_at)

    def credit_seconds(self, now: float) -> float:
        """Return the credit of a step that begins at *now*; negative if the step begins early."""
        if self.last is None:
            return 0.0
        return min(max(now - self.last.due_at, -LONGEST_RESERVE_SECONDS), LONGEST_CREDIT_SECONDS)

    def step_ended(
        self, mechanism: str, reserves: Reserves, *, began: float, planned: float, now: float
    ) -> None:
        """Record a slow step from *began* to *now*; several sites may take part in one step.

        The step was planned to end at *planned*, but its real work may have taken longer.
        """
        if self.last is not None and self.last.mechanism != mechanism:
            reserves.learn(self.last.mechanism, began - self.last.ended_at)
        self.has_compiled = self.has_compiled or mechanism == "compile"
        self.last = Step(mechanism, now, max(now, planned + reserves.after(mechanism)))


def paced_mechanism(file: Path) -> str:
    """Return the mechanism of a session's last slow step; "" if there was no slow step.

    The wrapper scripts of the session write the mechanism to *file*.
    """
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return ""


def planned_seconds(mechanism: str, seconds: Mapping[str, float]) -> float:
    """Return the seconds from the begin of a session to the planned end of its last slow step.

    *mechanism* is the mechanism of this step; *seconds* are the planned seconds of each mechanism.
    """
    waited = max(0.0, seconds.get("queue", 0.0)) if mechanism == "compute" else 0.0
    return waited + seconds.get(mechanism, 0.0)
