"""A server for spools that keeps what it receives in memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from reporters.spool.notes import DroppedNote
from reporters.spool.owner import Process
from reporters.spool.receipts import Receipt, RecordRange
from reporters.spool.records import Part, Record, encode_parts, parse_parts
from reporters.spool.spool import Spool

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
REPORTER = "ncsa"


def report(number: int, padding: int = 0) -> bytes:
    """Return a body like that of the report of run *number*."""
    return b'{"log":"%s","run":"%s"}' % (b"x" * padding, str(uuid.UUID(int=number)).encode())


def receipt_for(parts: Iterable[Part]) -> Receipt:
    ranges = tuple(
        RecordRange(part.chain, part.records[0].sequence, part.records[-1].sequence, part.records[-1].hash)
        for part in parts
    )
    return Receipt(REPORTER, NOON, ranges)


class Depot:
    """The records that were received. A second record of the same number must be the same."""

    def __init__(self) -> None:
        self.records: dict[tuple[uuid.UUID, int], Record] = {}

    def receive(self, parts: Sequence[Part]) -> Receipt:
        assert parse_parts(encode_parts(parts)) == list(parts)
        for part in parts:
            for record in part.records:
                assert self.records.setdefault((part.chain, record.sequence), record) == record
        return receipt_for(parts)

    def deliver(self, spool: Spool, most_records: int = 500) -> int:
        """Deliver all of *spool*; return how many batches that took."""
        batches = 0
        while parts := spool.batch(most_records):
            assert spool.acknowledge(self.receive(parts)).ignored == ()
            batches += 1
        return batches

    def bodies(self, kind: str = "report") -> list[bytes]:
        """Return the bodies of the records of *kind*, in the order in which they arrived."""
        return [record.body for record in self.records.values() if record.kind == kind]

    def dropped(self) -> list[DroppedNote]:
        return [DroppedNote.from_body(body) for body in self.bodies("dropped")]

    def check_chains(self) -> None:
        """Assert that the records of each chain are linked wherever they are consecutive."""
        for (chain, sequence), record in self.records.items():
            if following := self.records.get((chain, sequence + 1)):
                assert following.previous == record.hash


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = NOON
        self.seconds = 0.0


def dead() -> Process:
    """Return a process of this host that has ended."""
    own = Process.current()
    return Process(own.pid, own.host, own.boot, own.pid_namespace, "1")


def elsewhere(host: str = "login2") -> Process:
    """Return a process of another host."""
    return Process(1, host, "another boot", "", "1")
