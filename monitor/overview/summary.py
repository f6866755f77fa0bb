"""What is said above every overview: how runs of the last hour ended, what does not work, what goes on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from monitor.ledger.attribution import GRID_FAILURES, MONITOR_FAILURES, outcome_label
from monitor.ledger.maintenance import ShownWindow
from monitor.models.run import State
from monitor.overview.series_summary import Last

LAST_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Trouble:
    """A series that does not work now: where (None: not known, or ours), and how often in a row."""

    series: str
    site: str | None
    ours: bool
    last: Last
    in_a_row: int

    @property
    def words(self) -> str:
        return outcome_label(self.last.state)


@dataclass(frozen=True)
class Glance:
    """*outcomes* counts the runs of the last hour by state; *works* go on now.

    Of *troubled* series the first are in *troubles*. *digest* changes when anything that is shown does, but
    for the age of things.
    """

    troubles: Sequence[Trouble]
    troubled: int
    works: Sequence[ShownWindow]
    outcomes: Mapping[str, int]
    digest: str

    @property
    def runs(self) -> int:
        return sum(self.outcomes.values())

    @property
    def passed_share(self) -> float | None:
        """Of the runs that were really made; None where there were none."""
        made = sum(self.outcomes.get(state, 0) for state in (State.PASSED, State.BROKEN, *GRID_FAILURES))
        return self.outcomes.get(State.PASSED, 0) / made if made else None


def in_a_row(states: Sequence[str]) -> int:
    """How many of the newest runs did not pass, skipped ones aside; *states* are oldest first."""
    told = [state for state in states if state != State.SKIPPED]
    bad = (*GRID_FAILURES, *MONITOR_FAILURES)
    return next((n for n, state in enumerate(reversed(told)) if state not in bad), len(told))


def work_at(sites: Collection[str], works: Sequence[ShownWindow]) -> str:
    """What goes on at any of *sites*, in words; empty if nothing."""
    return next((one.words for one in works if one.covers(sites)), "")
