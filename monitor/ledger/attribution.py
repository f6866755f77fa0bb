"""Whose fault is it? What the outcome of a run means, seen from one site."""

from __future__ import annotations

from enum import StrEnum

from monitor.models.run import State

GRID_FAILURES = (State.FAILED, State.TIMED_OUT)
MONITOR_FAILURES = (State.BROKEN, State.MISSED, State.LOST)

STATE_LABELS = {
    State.EXPECTED: "expected",
    State.CLAIMED: "claimed",
    State.RUNNING: "running",
    State.PASSED: "passed",
    State.FAILED: "failed",
    State.BROKEN: "probe broken",
    State.NO_DATA: "no data",
    State.TIMED_OUT: "timed out",
    State.SKIPPED: "skipped",
    State.MISSED: "missed",
    State.LOST: "lost",
}
_PLACES = {"here": " here", "elsewhere": " elsewhere", "somewhere": " somewhere"}


class Fault(StrEnum):
    """Who has to act."""

    NOBODY = "nobody"  # it passed, or there was nothing to do
    HERE = "here"  # this site
    ELSEWHERE = "elsewhere"  # another site
    SOMEWHERE = "somewhere"  # the grid, but the report names no resource of ours
    OURS = "ours"  # the monitor or the probe itself


def fault(state: str, *, failed_site: str, site: str) -> Fault:
    """Whose fault an outcome is, seen from *site*; *failed_site* is empty where the report names none."""
    if state in MONITOR_FAILURES:
        return Fault.OURS
    if state not in GRID_FAILURES:
        return Fault.NOBODY
    if not failed_site:
        return Fault.SOMEWHERE
    return Fault.HERE if failed_site == site else Fault.ELSEWHERE


def outcome_label(state: str, whose: Fault = Fault.NOBODY) -> str:
    """The outcome in two words, e.g. "failed here"."""
    return STATE_LABELS[State(state)] + _PLACES.get(whose, "")
