"""The contract of a condition that decides from what a remote reporter said whether an alert is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol


@dataclass(frozen=True)
class Drop:
    """A note of a reporter that it removed *records* from its spool without delivering them."""

    received_at: datetime
    records: int


@dataclass(frozen=True)
class ReporterInput:
    """What a condition knows of an enrolled reporter.

    Attributes:
        enrolled_at: when its key was enrolled.
        seen_at: the time of its last exchange; None before the first.
        oldest_at: when the oldest record that it had spooled then was written, by the server's clock; None if
            its spool was empty.
        clock_offset_seconds: the server's clock minus its own at that time.
        clock_bound_seconds: the largest error of the offset.
        drops: the newest notes of dropped records, oldest first.
    """

    enrolled_at: datetime
    seen_at: datetime | None = None
    oldest_at: datetime | None = None
    clock_offset_seconds: float | None = None
    clock_bound_seconds: float | None = None
    drops: Sequence[Drop] = ()


@dataclass(frozen=True)
class ReporterVerdict:
    """The verdict of a condition: whether an alert is open, and why (*text*).

    *since* is the time from which on the condition has been met; None if it is not met.
    """

    is_open: bool
    text: str
    since: datetime | None = None


class ReporterCondition(Protocol):
    """A condition with one threshold: a whole number between *least* and *most*, in *unit*."""

    label: ClassVar[str]  # what pages call it
    description: ClassVar[str]  # a sentence for the reference of the grid file
    unit: ClassVar[str]
    least: ClassVar[int]
    most: ClassVar[int]
    default: ClassVar[int]  # the threshold of the rule that every grid has
    title: ClassVar[str]  # the title of this rule

    def __init__(self, threshold: int) -> None: ...

    def judge(self, reporter: ReporterInput, now: datetime) -> ReporterVerdict:
        """Return the verdict on *reporter* at *now*. It depends on the arguments alone."""
