"""The part of a prediction that one class of calls has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClassRatio:
    """The predicted *seconds* of a class of calls: *ratio* (target / reference) times *reference_seconds*."""

    name: str
    reference_seconds: float
    ratio: float
    seconds: float
