"""Attribute the outcome of a run: to a site, to the grid, or to the monitor itself."""

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


class Fault(StrEnum):
    """The cause of an outcome, as seen from one site."""

    NONE = "nobody"  # nothing failed
    HERE = "here"  # this site
    ELSEWHERE = "elsewhere"  # another site
    SOMEWHERE = "somewhere"  # the grid; the report names no known resource
    MONITOR = "ours"  # the monitor, or the probe itself


_SUFFIXES = {Fault.HERE: " here", Fault.ELSEWHERE: " elsewhere", Fault.SOMEWHERE: " somewhere"}


def fault(state: str, *, failed_site: str, site: str) -> Fault:
    """Attribute the outcome *state* as seen from *site*.

    *failed_site* is the site of the resource that failed; empty if the report names no such resource.
    """
    if state in MONITOR_FAILURES:
        return Fault.MONITOR
    if state not in GRID_FAILURES:
        return Fault.NONE
    if not failed_site:
        return Fault.SOMEWHERE
    return Fault.HERE if failed_site == site else Fault.ELSEWHERE


def outcome_label(state: str, whose: Fault = Fault.NONE) -> str:
    """Return the label of the outcome *state* with its fault *whose*, such as "failed here"."""
    return STATE_LABELS[State(state)] + _SUFFIXES.get(whose, "")
