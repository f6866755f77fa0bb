"""Two runs of one series are never at the same time."""

from __future__ import annotations

from monitor.ledger.admission.base import AdmissionContext, DueRun, Skip, Verdict, Wait


def judge(candidate: DueRun, situation: AdmissionContext) -> Verdict:
    """A slot is skipped; what was asked for, or is to be run again, waits."""
    if not situation.runs_of_series(candidate.demand.series):
        return None
    if candidate.asked or candidate.again:
        return Wait("queued: overlap: another run of the series has not ended yet")
    return Skip("overlap: the run before it had not ended when its time came")
