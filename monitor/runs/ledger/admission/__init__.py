"""Decide whether a due run may start now, with pure functions of the time and the state of the grid.

Each rule is one file in ``rules``; the folder is the registry.
"""

from monitor.runs.ledger.admission.base import (
    ActiveHold,
    AdmissionContext,
    Budget,
    BudgetUsed,
    Demand,
    DueRun,
    LeaderRun,
    Skip,
    Verdict,
    Wait,
    decide,
)

__all__ = [
    "ActiveHold",
    "AdmissionContext",
    "Budget",
    "BudgetUsed",
    "Demand",
    "DueRun",
    "LeaderRun",
    "Skip",
    "Verdict",
    "Wait",
    "decide",
]
