"""The contract of a condition, a pure function that decides from runs of a series whether an alert is open.

Errors::

    ConditionError
    |-- UnknownCondition    the folder has no condition of that name    permanent
    '-- InvalidThreshold    the threshold is out of bounds              permanent
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Protocol

from monitor.models.run import DID_NOT_PASS, IN_FLIGHT, State
from monitor.runs.ledger.attribution import outcome_label

if TYPE_CHECKING:
    import uuid

COUNTED = (State.PASSED, *DID_NOT_PASS)  # "no data" and "skipped" are evidence of neither success nor failure
REPORTED_HERE = (State.PASSED, State.FAILED, State.BROKEN, State.TIMED_OUT)
UNREPORTED = (State.EXPECTED, *IN_FLIGHT, State.MISSED, State.LOST)
_REASON_CHARACTERS = 500  # the page of the run has the rest


class ConditionError(Exception):
    """Root of the errors of conditions."""


class UnknownCondition(ConditionError, LookupError):
    pass


class InvalidThreshold(ConditionError, ValueError):
    pass


@dataclass(frozen=True)
class RunOutcome:
    """A run of a series and its state so far."""

    run: uuid.UUID
    slot: datetime
    state: str
    reason: str = ""

    @property
    def text(self) -> str:
        """The outcome and its reason, or only the reason if the reason contains the outcome."""
        label = outcome_label(self.state)
        text = self.reason if label in self.reason else ": ".join(filter(None, (label, self.reason)))
        return text if len(text) <= _REASON_CHARACTERS else f"{text[:_REASON_CHARACTERS]}..."


@dataclass(frozen=True)
class ConditionInput:
    """The runs of a series on which a condition decides.

    Attributes:
        newest: the newest runs in a state of ``COUNTED``, newest first.
        unreported: the first run after the newest reported run; it may lie in the future.
        unreported_due_at: when this run is due.
    """

    newest: Sequence[RunOutcome] = ()
    unreported: RunOutcome | None = None
    unreported_due_at: datetime | None = None


@dataclass(frozen=True)
class Verdict:
    """The verdict of a condition: whether an alert is open, and why (*text*).

    Attributes:
        run: the run that opens or closes the alert.
        since: the slot from which on the condition has been met.
        recheck_at: when the verdict changes if no run of the series ends before.
    """

    is_open: bool
    text: str
    run: uuid.UUID | None = None
    since: datetime | None = None
    recheck_at: datetime | None = None


class AlertCondition(Protocol):
    """A condition with one threshold: a whole number between *least* and *most*, in *unit*."""

    label: ClassVar[str]  # what pages call it
    description: ClassVar[str]  # a sentence for the reference of the grid file
    unit: ClassVar[str]
    least: ClassVar[int]
    most: ClassVar[int]

    def __init__(self, threshold: int) -> None: ...

    @property
    def runs_needed(self) -> int:
        """The number of newest counted runs that ``judge`` needs."""

    def judge(self, runs: ConditionInput, now: datetime) -> Verdict:
        """Return the verdict on *runs* at *now*.

        The verdict depends on the arguments alone, so that a late report corrects it.
        """


def timestamp(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def check_threshold(kind: str, threshold: int, least: int, most: int, unit: str) -> None:
    """Raise InvalidThreshold unless *threshold* of the condition *kind*, in *unit*, is within its bounds."""
    if not least <= threshold <= most:
        raise InvalidThreshold(f"{kind}: expected {unit} from {least:,} to {most:,}, got {threshold:,}")
