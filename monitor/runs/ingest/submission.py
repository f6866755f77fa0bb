"""A report on its way into the depot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from monitor.runs.ingest.receipt import ReportReceipt

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.runs.ingest.fast_parser import ParsedReport


class OwnSlot(NamedTuple):
    """A slot that this transaction gives to a run for the first time; *name*: see ``record_names``."""

    slot: datetime
    is_chosen: bool
    name: tuple[int, str] | None


@dataclass(eq=False, slots=True)
class Submission:
    """A report, who sent it, and what is known of it so far.

    Attributes:
        body: the text to be stored: as it was sent, or completed.
        sender: the reporter whose credential sent it; None: trusted code.
        parsed: what it says; None until it was read, and for ever if it cannot be read.
        own: the slot that its run gets; None if the report names it, or the run has one already.
        receipt: None until the report is stored or refused.
    """

    body: bytes
    sender: str | None
    parsed: ParsedReport | None = None
    own: OwnSlot | None = None
    receipt: ReportReceipt | None = None

    @property
    def report(self) -> ParsedReport:
        if self.parsed is None:
            raise AssertionError("the report was not read")
        return self.parsed

    @property
    def final_receipt(self) -> ReportReceipt:
        if self.receipt is None:
            raise AssertionError("the report was neither stored nor refused")
        return self.receipt

    @property
    def is_waiting(self) -> bool:
        """Whether it was read, and is neither stored nor refused."""
        return self.parsed is not None and self.receipt is None

    def refuse(self, error: str, *, premature: bool = False) -> None:
        run = self.parsed.run if self.parsed else None
        self.receipt = ReportReceipt(run, accepted=False, premature=premature, error=error)
