"""Start a follower's run after the leader's run has ended; skip it if the leader's run did not take place.

The reasons do not name the leader: readers of the follower's run may not see it.
"""

from __future__ import annotations

from datetime import timedelta

from monitor.runs.ledger.admission.base import AdmissionContext, DueRun, Skip, Verdict, Wait

_MAX_WAIT = timedelta(days=1)


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    leader = run.leader
    if leader is None:
        return None
    if leader.ran is None:
        return Wait("queued: leader: the leader has not ended", run.due_at + _MAX_WAIT)
    if not leader.ran or leader.ended_at is None:
        return Skip(f"leader: the leader did not run: {leader.state}")
    starts_at = leader.ended_at + leader.delay
    if context.now < starts_at:
        return Wait(f"queued: leader: starts at {starts_at:%H:%M:%S} UTC, after the leader", starts_at)
    return None
