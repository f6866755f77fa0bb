"""Series that would disturb each other's measurements say so, and run one after the other.

With ``site`` a series shares no site with another exclusive one, with ``link`` no pair of sites.
"""

from __future__ import annotations

from monitor.ledger.admission.base import AdmissionContext, Demand, DueRun, Skip, Verdict, Wait


def judge(candidate: DueRun, situation: AdmissionContext) -> Verdict:
    """Waiting is bounded: then the slot is skipped, for it would measure another time."""
    if not candidate.demand.exclusive:
        return None
    others = situation.exclusive_in_flight
    rival = next((other for other in others if _disturbs(candidate.demand, other)), None)
    if rival is None:
        return None
    until = candidate.due_at + candidate.demand.exclusive_wait
    if situation.now < until or candidate.asked:
        return Wait(f"queued: exclusive: {rival.series} uses what it needs alone", until)
    waited_seconds = candidate.demand.exclusive_wait.total_seconds()
    return Skip(f"busy: {rival.series} used what it needs alone for {waited_seconds:.0f} s")


def _disturbs(one: Demand, other: Demand) -> bool:
    """Of two that are exclusive."""
    shared = len(one.sites & other.sites)
    return shared > 0 if "site" in (one.exclusive, other.exclusive) else shared > 1
