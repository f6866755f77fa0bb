"""What follows another run begins so much after its end, and is skipped where that one did not run."""

from __future__ import annotations

from datetime import timedelta

from monitor.ledger.admission.base import AdmissionContext, DueRun, Skip, Verdict, Wait

_LONGEST = timedelta(days=1)  # that a leader's run is waited for


def judge(candidate: DueRun, situation: AdmissionContext) -> Verdict:
    leader = candidate.leader
    if leader is None:
        return None
    if leader.ran is None:
        return Wait(f"queued: leader: {leader.series} has not ended", candidate.due_at + _LONGEST)
    if not leader.ran or leader.ended_at is None:
        return Skip(f"leader: {leader.series} did not run: {leader.state}")
    begins_at = leader.ended_at + leader.delay
    if situation.now < begins_at:
        return Wait(f"queued: leader: {begins_at:%H:%M:%S} UTC is its time, after {leader.series}", begins_at)
    return None
