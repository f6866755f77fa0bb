"""May this run start now? The rules of the server's ledger that apply at the site, and the site's policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reporters.remote.assignment import AssignedSeries, SiteAssignment

ROOM_WAIT = timedelta(seconds=900)
LEADER_WAIT = timedelta(days=1)


@dataclass(frozen=True)
class FailedStart:
    """A run could not be started, for this *reason*; the start is tried again before *until*."""

    until: datetime
    reason: str


@dataclass(frozen=True)
class SiteRun:
    """A run that waits or is running.

    One with *expires_at* was requested, by a user or as a retry, and does not start after that time.
    """

    series: AssignedSeries
    slot: datetime
    due_at: datetime
    expires_at: datetime | None = None
    failed_start: FailedStart | None = None

    @property
    def is_requested(self) -> bool:
        return self.expires_at is not None


@dataclass(frozen=True)
class LeaderEnd:
    """How a leader's run ended; *has_run* is false if it was skipped or did not end."""

    ended_at: datetime
    has_run: bool


@dataclass(frozen=True)
class SiteState:
    """What the verdict depends on.

    Attributes:
        capacity: the most runs at the same time, by the assignment and the policy.
        leaders: the ends of leaders' runs, by series and slot.
        refusal: returns why the site's policy refuses a run now, or an empty text.
    """

    assignment: SiteAssignment
    now: datetime
    running: Collection[SiteRun]
    capacity: int
    leaders: Mapping[tuple[str, datetime], LeaderEnd]
    refusal: Callable[[SiteRun], str]


@dataclass(frozen=True)
class SiteVerdict:
    """Start the run; or skip it with *reason*; or wait."""

    is_start: bool = False
    reason: str = ""


START, WAIT = SiteVerdict(is_start=True), SiteVerdict()


def judge(run: SiteRun, state: SiteState) -> SiteVerdict:
    """Return the verdict on *run*, which is due."""
    for rule in (_window, _overlap, _leader, _policy, _exclusive, _room):
        verdict = rule(run, state)
        if verdict is not None:
            return verdict
    return START


def _window(run: SiteRun, state: SiteState) -> SiteVerdict | None:
    if run.is_requested:
        return None
    for window in state.assignment.windows:
        if window.covers(run.series.name, state.now):
            return SiteVerdict(reason=window.reason)
    return None


def _overlap(run: SiteRun, state: SiteState) -> SiteVerdict | None:
    if all(other.series.name != run.series.name for other in state.running):
        return None
    if run.is_requested:
        return WAIT
    return SiteVerdict(reason="overlap: the previous run had not ended when this one was due")


def _leader(run: SiteRun, state: SiteState) -> SiteVerdict | None:
    leader = run.series.after
    if not leader or run.is_requested:
        return None
    end = state.leaders.get((leader, run.slot))
    if end is None:
        is_too_late = state.now > run.due_at + LEADER_WAIT
        return SiteVerdict(reason="leader: the leader has not ended for a day") if is_too_late else WAIT
    if not end.has_run:
        return SiteVerdict(reason="leader: the leader did not run")
    starts_at = end.ended_at + timedelta(seconds=run.series.delay_seconds)
    return None if state.now >= starts_at else WAIT


def _policy(run: SiteRun, state: SiteState) -> SiteVerdict | None:
    if len(state.running) >= state.capacity:
        return None  # the run waits for room first
    reason = state.refusal(run)
    return SiteVerdict(reason=reason) if reason else None


def _exclusive(run: SiteRun, state: SiteState) -> SiteVerdict | None:
    if not run.series.exclusive:
        return None
    rivals = [other for other in state.running if other.series.exclusive]
    rival = next((other for other in rivals if _conflict(run.series, other.series, state.assignment)), None)
    if rival is None:
        return None
    wait_seconds = run.series.exclusive_wait_seconds
    if run.is_requested or state.now < run.due_at + timedelta(seconds=wait_seconds):
        return WAIT
    sites = ", ".join(sorted(state.assignment.sites(run.series) & state.assignment.sites(rival.series)))
    return SiteVerdict(reason=f"busy: another series used {sites} for {wait_seconds:.0f} s")


def _conflict(first: AssignedSeries, second: AssignedSeries, assignment: SiteAssignment) -> bool:
    shared = len(assignment.sites(first) & assignment.sites(second))
    return shared > 0 if "site" in (first.exclusive, second.exclusive) else shared > 1


def _room(run: SiteRun, state: SiteState) -> SiteVerdict | None:
    if len(state.running) < state.capacity:
        return None
    if run.is_requested or state.now < run.due_at + ROOM_WAIT:
        return WAIT
    waited = ROOM_WAIT.total_seconds()
    return SiteVerdict(reason=f"room: the reporter already had {len(state.running)} runs for {waited:.0f} s")
