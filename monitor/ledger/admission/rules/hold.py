"""Start nothing of a series, suite, site or reporter that is paused or drained."""

from __future__ import annotations

from monitor.ledger.admission.base import AdmissionContext, DueRun, Skip, Verdict


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    """Skip the run, even if a user requested it.

    A forced run passes the holds that were in force when it was requested, which is when it became due, but
    not those placed later.
    """
    for hold in context.holds:
        is_overruled = run.is_forced and hold.began_at <= run.due_at
        if hold.covers(run.demand) and not is_overruled:
            return Skip(hold.reason)
    return None
