"""A reporter has so many runs at once, and a site takes part in so many."""

from __future__ import annotations

from monitor.ledger.admission.base import AdmissionContext, DueRun, Verdict, Wait


def judge(candidate: DueRun, situation: AdmissionContext) -> Verdict:
    demand = candidate.demand
    its_own = situation.runs_of_reporter(demand.reporter)
    if its_own >= situation.reporter_runs.get(demand.reporter, 0):
        return Wait(f"queued: room: the reporter {demand.reporter} has {its_own} runs already")
    for site in sorted(demand.sites & situation.site_runs.keys()):
        busy = situation.runs_at_site(site)
        if busy >= situation.site_runs[site]:
            return Wait(f"queued: room: the site {site} takes part in {busy} runs already")
    return None
