"""Let a run wait while its reporter, or one of its sites, already runs its maximum number of runs."""

from __future__ import annotations

from monitor.runs.ledger.admission.base import AdmissionContext, DueRun, Verdict, Wait


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    demand = run.demand
    of_reporter = context.runs_of_reporter(demand.reporter)
    if of_reporter >= context.reporter_runs.get(demand.reporter, 0):
        return Wait(f"queued: room: the reporter {demand.reporter} already has {of_reporter} runs")
    for site in sorted(demand.sites & context.site_runs.keys()):
        at_site = context.runs_at_site(site)
        if at_site >= context.site_runs[site]:
            return Wait(f"queued: room: the site {site} already takes part in {at_site} runs")
    return None
