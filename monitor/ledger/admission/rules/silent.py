"""A reporter that has fallen silent is given nothing: what it got would only be taken for dead."""

from __future__ import annotations

from monitor.ledger.admission.base import AdmissionContext, DueRun, Verdict, Wait


def judge(candidate: DueRun, situation: AdmissionContext) -> Verdict:
    """Other rules are asked all the same: slots of a reporter that was paused and stopped are skipped."""
    if candidate.demand.reporter not in situation.silent_reporters:
        return None
    return Wait(f"queued: silent: the reporter {candidate.demand.reporter} is not heard of")
