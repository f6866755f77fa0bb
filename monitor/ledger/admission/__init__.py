"""May this run begin now? Pure: what is known is a value, the time in it too.

A rule is one file in ``rules``; the folder is the registry.
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
