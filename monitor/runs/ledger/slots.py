"""The state of slots: planned, due, late, claimed, done, skipped or missed."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.conf import settings

from monitor.models.run import IN_FLIGHT, REPORTED, State

if TYPE_CHECKING:
    from monitor.models import Run
    from monitor.models.run import RunQuerySet


class SlotState(StrEnum):
    """The state of a slot."""

    PLANNED = "planned"  # its time has not come
    DUE = "due"  # no reporter has claimed it yet
    LATE = "late"  # due for longer than the grace time
    CLAIMED = "claimed"  # a reporter has claimed it, or runs it
    DONE = "done"  # a report came
    SKIPPED = "skipped"  # it was not to run
    MISSED = "missed"  # no report came


_DONE: list[State] = [state for state in REPORTED if state != State.SKIPPED]
_RUN_STATES: dict[SlotState, list[State]] = {
    SlotState.CLAIMED: list(IN_FLIGHT),
    SlotState.DONE: _DONE,
    SlotState.SKIPPED: [State.SKIPPED],
    SlotState.MISSED: [State.MISSED, State.LOST],
}
_OF_RUN = {run_state: state for state, run_states in _RUN_STATES.items() for run_state in run_states}


def slot_state(run: Run, now: datetime) -> SlotState:
    """Return the state of the slot of *run* at *now*."""
    if run.state != State.EXPECTED:
        return _OF_RUN[State(run.state)]
    if run.due_at > now:
        return SlotState.PLANNED
    return SlotState.LATE if run.due_at <= now - _grace() else SlotState.DUE


def in_slot_state(runs: RunQuerySet, state: SlotState, now: datetime) -> RunQuerySet:
    """Return those of *runs* whose slot is in *state* at *now*."""
    match state:
        case SlotState.PLANNED:
            return runs.filter(state=State.EXPECTED, due_at__gt=now)
        case SlotState.DUE:
            return runs.due(now).filter(due_at__gt=now - _grace())
        case SlotState.LATE:
            return runs.due(now - _grace())
        case _:
            return runs.filter(state__in=_RUN_STATES[state])


def _grace() -> timedelta:
    return timedelta(seconds=settings.GRIDCAST_GRACE_SECONDS)
