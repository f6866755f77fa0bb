"""The symbols of states in charts and their legends: a shape each, so that colour is not needed."""

from __future__ import annotations

from monitor.models.run import State

STATE_GLYPHS = {
    State.FAILED: "✖",
    State.TIMED_OUT: "⧗",
    State.BROKEN: "◆",
    State.MISSED: "◇",
    State.LOST: "◈",
    State.SKIPPED: "▷",
    State.NO_DATA: "○",
}
