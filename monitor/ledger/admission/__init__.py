"""May this run begin now? Pure: what is known is a value, the time in it too.

A rule is one file in ``rules``; the folder is the registry.
"""

from monitor.ledger.admission.base import (
    Budget,
    Candidate,
    Demand,
    Held,
    Leader,
    Situation,
    Skip,
    Spent,
    Verdict,
    Wait,
    Window,
    decide,
)

__all__ = [
    "Budget",
    "Candidate",
    "Demand",
    "Held",
    "Leader",
    "Situation",
    "Skip",
    "Spent",
    "Verdict",
    "Wait",
    "Window",
    "decide",
]
