"""Give nothing to a reporter that sends no heartbeats: its runs would only lose their leases."""

from __future__ import annotations

from monitor.ledger.admission.base import AdmissionContext, DueRun, Verdict, Wait


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    """Let the run wait. A Skip of another rule outweighs it, e.g. if the reporter was paused first."""
    if run.demand.reporter not in context.silent_reporters:
        return None
    return Wait(f"queued: silent: the reporter {run.demand.reporter} sends no heartbeats")
