"""Keep exclusive series from running at the same time: they would disturb each other's measurements.

``Demand.exclusive`` is ``site`` if the run must not share a site with another exclusive run, and ``link`` if
two runs may share one site, but not two sites. The reasons name these sites, and not the other series:
readers of the run may not see it.
"""

from __future__ import annotations

from monitor.runs.ledger.admission.base import AdmissionContext, Demand, DueRun, Skip, Verdict, Wait


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    """Let a run that conflicts with a run in flight wait for ``exclusive_wait``, then skip it as too late."""
    if not run.demand.exclusive:
        return None
    rivals = (other for other in context.exclusive_in_flight if _conflict(run.demand, other))
    rival = next(rivals, None)
    if rival is None:
        return None
    sites = ", ".join(sorted(run.demand.sites & rival.sites))
    until = run.due_at + run.demand.exclusive_wait
    if context.now < until or run.is_requested:
        return Wait(f"queued: exclusive: another series is using {sites}", until)
    waited_seconds = run.demand.exclusive_wait.total_seconds()
    return Skip(f"busy: another series used {sites} for {waited_seconds:.0f} s")


def _conflict(first: Demand, second: Demand) -> bool:
    """Return whether two exclusive runs must not overlap."""
    shared = len(first.sites & second.sites)
    return shared > 0 if "site" in (first.exclusive, second.exclusive) else shared > 1
