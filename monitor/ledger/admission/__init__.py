"""Decide whether a due run may start now, with pure functions: the state of the grid and the time are values.

Each rule is one file in ``rules``; the folder is the registry.
"""

from monitor.ledger.admission.base import (
    ActiveHold,
    AdmissionContext,
    Budget,
    BudgetUsed,
    Demand,
    DueRun,
    LeaderRun,
    OpenWindow,
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
    "OpenWindow",
    "Skip",
    "Verdict",
    "Wait",
    "decide",
]
