"""How far the clock of this host was off during a run, to be added to the times of its report.

The report keeps the times of the host as they are. The server stores the corrected ones, and shows by how
much.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from reporters.remote.clock import ClockOffset
from reporters.report import MOST_CORRECTION_SECONDS, Report

LEAST_SECONDS = 5.0  # clocks without NTP drift by as much; no slot depends on it


def corrected(report: Report, offset: ClockOffset | None, now: datetime) -> Report:
    """Return *report* with the correction of its times, if they were off.

    *offset* is that of the server's clock to the host's, and *now* the server's time, both when the report
    had just been made; None: unknown, so nothing is corrected.
    """
    if offset is None:
        return report
    seconds = correction_seconds(report, offset, now)
    if abs(seconds) < LEAST_SECONDS + offset.bound_seconds or abs(seconds) > MOST_CORRECTION_SECONDS:
        return report
    return replace(report, clock=replace(report.clock, correction_seconds=seconds))


def correction_seconds(report: Report, offset: ClockOffset, now: datetime) -> float:
    """Return what is to be added to the start of *report*, by the host's clock, for the server's time.

    The duration is by a clock that never jumps. If it does not fit between the start and the end by the
    host's clock, that clock was set back during the run, and the start was by the clock before. (If the time
    between them is longer, the host may have slept.) A report that lies in the future was made before the
    clock was set: it was made now at the latest.
    """
    sent_at = report.clock.sent_at
    set_back = (sent_at - report.started_at).total_seconds() - report.seconds
    set_back = set_back if set_back < -LEAST_SECONDS else 0.0
    at_the_end = offset.offset_seconds
    ahead = (sent_at + timedelta(seconds=at_the_end) - now).total_seconds()
    return at_the_end + set_back - max(0.0, ahead if ahead > LEAST_SECONDS else 0.0)
