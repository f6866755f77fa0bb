"""Start no run of a reporter that sends no heartbeats: the lease of the run would only expire."""

from __future__ import annotations

from monitor.runs.ledger.admission.base import AdmissionContext, DueRun, Verdict, Wait


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    """Let the run wait; a rule that skips the run takes precedence, e.g. if the reporter is paused."""
    if run.demand.reporter not in context.silent_reporters:
        return None
    return Wait(f"queued: silent: the reporter {run.demand.reporter} sends no heartbeats")
