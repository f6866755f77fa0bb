"""Start nothing at a site while one of its maintenance windows is open."""

from __future__ import annotations

from monitor.runs.ledger.admission.base import AdmissionContext, DueRun, Skip, Verdict


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    """Skip the run in an open window unless a user requested it, e.g. to check whether maintenance helped."""
    if run.is_requested:
        return None
    for window in context.windows:
        if window.covers(run.demand.sites) and window.starts_at <= context.now < window.ends_at:
            return Skip(window.reason)
    return None
