"""Start nothing of a series, suite, site or reporter that is paused or drained."""

from __future__ import annotations

from monitor.runs.ledger.admission.base import AdmissionContext, DueRun, Skip, Verdict


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    """Skip a run that a hold covers, even if a user requested the run.

    A forced run ignores the holds that were placed before its request, but not holds that were placed later.
    """
    for hold in context.holds:
        is_overruled = run.is_forced and hold.began_at <= run.due_at
        if hold.covers(run.demand) and not is_overruled:
            return Skip(hold.reason)
    return None
