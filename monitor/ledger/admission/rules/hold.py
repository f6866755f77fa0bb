"""Nothing begins of a series, a suite, a site or a reporter that somebody has paused or drains."""

from __future__ import annotations

from monitor.ledger.admission.base import AdmissionContext, DueRun, Skip, Verdict


def judge(candidate: DueRun, situation: AdmissionContext) -> Verdict:
    """All are skipped, those that somebody asked for too. A run that was forced passes the holds that there
    were when it was asked for, which is when it came due: who holds later has the last word.
    """
    for held in situation.holds:
        overruled = candidate.forced and held.began_at <= candidate.due_at
        if held.covers(candidate.demand) and not overruled:
            return Skip(held.reason)
    return None
