"""Chains of records as the spool of a reporter holds them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from reporters import report as wire
from reporters.spool.notes import DroppedNote, StartNote
from reporters.spool.records import DROPPED, REPORT, START, Part, Record, next_record
from tests.monitor.builders import circle_report

STARTED = datetime(2026, 3, 1, 11, tzinfo=UTC)


@dataclass
class SpooledChain:
    """A chain that begins with its start note; *previous* is the reporter's chain before."""

    reporter: str = "home"
    previous: SpooledChain | None = None
    name: uuid.UUID = field(default_factory=uuid.uuid4)
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        before = (None, "") if self.previous is None else (self.previous.name, self.previous.head)
        self.add(START, StartNote(self.reporter, STARTED, *before).to_body())

    @property
    def head(self) -> str:
        return self.records[-1].hash

    @property
    def next(self) -> int:
        return len(self.records)

    def add(self, kind: str, body: bytes) -> Record:
        before = self.records[-1] if self.records else None
        self.records.append(next_record(self.name, before, kind, body))
        return self.records[-1]

    def report(self, *slots: datetime, **changes: object) -> SpooledChain:
        """Append a report of the series "circle" for each slot."""
        for slot in slots:
            report = circle_report(slot, **{"reporter": self.reporter, **changes})  # type: ignore[arg-type]
            self.add(REPORT, wire.to_json(report))
        return self

    def dropped(self, of: SpooledChain, first: int, last: int) -> SpooledChain:
        self.add(DROPPED, DroppedNote(of.name, first, last, "the spool is full").to_body())
        return self

    def part(self, sequences: Iterable[int] | None = None) -> Part:
        """Return the records with these numbers, by default all."""
        wanted = range(self.next) if sequences is None else sequences
        return Part(self.name, tuple(self.records[number] for number in wanted))
