"""Nothing is begun at a site during a blackout."""

from __future__ import annotations

from monitor.ledger.admission.base import AdmissionContext, DueRun, Skip, Verdict


def judge(candidate: DueRun, situation: AdmissionContext) -> Verdict:
    """Whoever asks for a run wants to see, for instance, whether the work has helped: it is let in."""
    if candidate.asked:
        return None
    for window in situation.windows:
        if window.covers(candidate.demand.sites) and window.starts_at <= situation.now < window.ends_at:
            return Skip(window.reason)
    return None
