"""Never run a series twice at the same time."""

from __future__ import annotations

from monitor.runs.ledger.admission.base import AdmissionContext, DueRun, Skip, Verdict, Wait


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    """Skip a scheduled run while its series runs; let a requested run, or a run claimed before, wait."""
    if not context.runs_of_series(run.demand.series):
        return None
    if run.is_requested or run.is_reclaimed:
        return Wait("queued: overlap: another run of the series has not ended")
    return Skip("overlap: the previous run had not ended when this one was due")
