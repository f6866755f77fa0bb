"""A site gives so many runs, bytes and CPU-hours a day; what is spent is spent until midnight UTC."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.ledger.admission.base import AdmissionContext, Budget, BudgetUsed, DueRun, Skip, Verdict
from reporters.usage import format_bytes

_NOTHING = BudgetUsed()


def judge(candidate: DueRun, situation: AdmissionContext) -> Verdict:
    """Binds whoever asks, too: it is the site's, not the monitor's.

    What runs in flight will have used is not known before they end, so that the last of a day may exceed it.
    """
    for site in sorted(candidate.demand.sites & situation.budgets.keys()):
        busy = situation.runs_at_site(site)
        spent = next(_spent(situation.budgets[site], situation.spent.get(site, _NOTHING), busy), None)
        if spent is not None:
            return Skip(f"budget: {site} has {spent} today")
    return None


def _spent(budget: Budget, spent: BudgetUsed, busy: int) -> Iterator[str]:
    """What of *budget* there is no more of, in words. Those that are *busy* count as begun today."""
    if budget.runs is not None and spent.runs + busy >= budget.runs:
        yield f"taken part in {spent.runs + busy} of {budget.runs} runs"
    if budget.bytes is not None and spent.bytes >= budget.bytes:
        yield f"moved {format_bytes(spent.bytes)} of {format_bytes(budget.bytes)}"
    if budget.cpu_hours is not None and spent.cpu_hours >= budget.cpu_hours:
        yield f"computed {spent.cpu_hours:.2f} of {budget.cpu_hours:.2f} CPU-hours"
