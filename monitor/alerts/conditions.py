"""Given what is known of a series: is an alert of a rule to be open? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.ledger.attribution import outcome_label
from monitor.models.run import DID_NOT_PASS, IN_FLIGHT, State
from monitor.units import coarse_seconds

if TYPE_CHECKING:
    import uuid

MOST_CHARACTERS = 500  # of what a run says; its page has all
COUNTED = (State.PASSED, *DID_NOT_PASS)  # no data and skipped say neither yes nor no
HEARD = (State.PASSED, State.FAILED, State.BROKEN, State.TIMED_OUT)
UNHEARD = (State.EXPECTED, *IN_FLIGHT, State.MISSED, State.LOST)


@dataclass(frozen=True)
class Condition:
    """Of a rule: one of the two."""

    failures_in_row: int | None = None
    silent_seconds: int | None = None


@dataclass(frozen=True)
class Outcome:
    """A run of a series, and what became of it so far."""

    run: uuid.UUID
    slot: datetime
    state: str
    reason: str = ""


@dataclass(frozen=True)
class Known:
    """Of a series: the *newest* runs whose outcome counts, the newest first; and the first run *unheard* of
    since the last that was heard of, which may be to come, with the time at which it is due."""

    newest: Sequence[Outcome] = ()
    unheard: Outcome | None = None
    unheard_due_at: datetime | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether an alert is to be open, by which run, and why, in words.

    *again_at*: when it will be another, if nothing else happens before.
    """

    is_open: bool
    text: str
    run: uuid.UUID | None = None
    since: datetime | None = None
    again_at: datetime | None = None


def judge(condition: Condition, known: Known, now: datetime) -> Verdict:
    """What *condition* says of a series. Nothing that was said before is remembered: a report that is late
    corrects it."""
    if condition.failures_in_row is not None:
        return _failures(condition.failures_in_row, known.newest)
    return _silence(timedelta(seconds=condition.silent_seconds or 0), known, now)


def _failures(most: int, newest: Sequence[Outcome]) -> Verdict:
    looked_at = newest[:most]
    passed = next((one for one in looked_at if one.state == State.PASSED), None)
    if passed is not None:
        return Verdict(False, f"passed at {_told(passed.slot)}", passed.run)
    if len(looked_at) < most:
        return Verdict(False, f"fewer than {most} runs in a row did not pass")
    last, first = looked_at[0], looked_at[-1]
    many = "a run did not pass" if most == 1 else f"{most} runs in a row did not pass; the last"
    return Verdict(True, f"{many}: {_ended(last)}", last.run, first.slot)


def _silence(longest: timedelta, known: Known, now: datetime) -> Verdict:
    if known.unheard is None or known.unheard_due_at is None:
        return _heard(known, None)
    until = known.unheard_due_at + longest
    if now < until:
        return _heard(known, until)
    said = coarse_seconds(longest.total_seconds())
    why = f"nothing was heard for {said} after a run was expected at {_told(known.unheard.slot)}"
    return Verdict(True, why, known.unheard.run, known.unheard.slot)


def _heard(known: Known, until: datetime | None) -> Verdict:
    last = next((one for one in known.newest if one.state in HEARD), None)
    if last is None:
        return Verdict(False, "nothing is overdue any more", again_at=until)
    return Verdict(
        False, f"heard of again: {outcome_label(last.state)} at {_told(last.slot)}", last.run, again_at=until
    )


def _ended(one: Outcome) -> str:
    """How, and why; a reason may have said how already."""
    how = outcome_label(one.state)
    said = one.reason if how in one.reason else ": ".join(filter(None, (how, one.reason)))
    return said if len(said) <= MOST_CHARACTERS else f"{said[:MOST_CHARACTERS]}..."


def _told(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
