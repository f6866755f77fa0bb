"""Enforce the daily budgets of sites: runs, bytes and CPU-hours, from midnight to midnight UTC."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.runs.ledger.admission.base import AdmissionContext, Budget, BudgetUsed, DueRun, Skip, Verdict
from reporters.usage import format_bytes

_NOTHING = BudgetUsed()


def judge(run: DueRun, context: AdmissionContext) -> Verdict:
    """Skip the run if the budget of one of its sites is used up.

    Not even a user's request overrides a budget: the site sets it. The usage of a run is known only when the
    run ends, so the last runs of a day may exceed the budget.
    """
    for site in sorted(run.demand.sites & context.budgets.keys()):
        in_flight = context.runs_at_site(site)
        used_up = next(
            used_up_limits(context.budgets[site], context.used.get(site, _NOTHING), in_flight), None
        )
        if used_up is not None:
            return Skip(f"budget: {site} has {used_up} today")
    return None


def used_up_limits(budget: Budget, used: BudgetUsed, in_flight: int) -> Iterator[str]:
    """Yield a description of each limit of *budget* that is used up.

    Runs *in_flight*, which are not part of *used*, count as runs of today.
    """
    if budget.runs is not None and used.runs + in_flight >= budget.runs:
        yield f"taken part in {used.runs + in_flight} of {budget.runs} runs"
    if budget.bytes is not None and used.bytes >= budget.bytes:
        yield f"moved {format_bytes(used.bytes)} of {format_bytes(budget.bytes)}"
    if budget.cpu_hours is not None and used.cpu_hours >= budget.cpu_hours:
        yield f"computed {used.cpu_hours:.2f} of {budget.cpu_hours:.2f} CPU-hours"
