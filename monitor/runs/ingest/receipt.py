"""The receipt of a report, which its sender gets after the commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid
    from datetime import datetime


@dataclass(frozen=True)
class ReportReceipt:
    """The outcome of ingesting one report; the sender may delete an *accepted* report.

    Attributes:
        run: the run that the report names; None if it names none.
        duplicate: the same report was stored before.
        conflict: another report of the run was stored before, and this one, if accepted, is kept beside.
        premature: refused only because its times lie ahead of now, by at most ``PREMATURE``.
        stored: the run in the ledger and its slot; None if the report was refused.
    """

    run: uuid.UUID | None
    accepted: bool
    duplicate: bool = False
    conflict: bool = False
    premature: bool = False
    error: str = ""
    stored: tuple[uuid.UUID, datetime] | None = None
