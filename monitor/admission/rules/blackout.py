"""Nothing is begun at a site during a blackout."""

from __future__ import annotations

from monitor.admission.base import Candidate, Situation, Skip, Verdict


def judge(candidate: Candidate, situation: Situation) -> Verdict:
    """Whoever asks for a run wants to see, for instance, whether the work has helped: it is let in."""
    if candidate.asked:
        return None
    for window in situation.windows:
        here = not window.sites or window.sites & candidate.demand.sites
        if here and window.starts_at <= situation.now < window.ends_at:
            return Skip(f"maintenance: {window.title}, until {window.ends_at:%Y-%m-%d %H:%M} UTC")
    return None
