"""The receipt of the server: which records it has committed. Shared with the server."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime

from reporters.fields import Fields, Unfit, clean_text, parse_object
from reporters.report import rfc3339
from reporters.spool.notes import UUID_PATTERN

_MOST_BYTES = 4 * 1024 * 1024
_MOST_ERROR_CHARACTERS = 1000


class MalformedReceipt(ValueError):
    """A document is no receipt; the message names the field."""


@dataclass(frozen=True)
class RecordRange:
    """Records *first* to *last* of *chain*, both included; *hash* is that of the last."""

    chain: uuid.UUID
    first: int
    last: int
    hash: str


@dataclass(frozen=True)
class RefusedRecord:
    """A record that the server will never accept, and why."""

    chain: uuid.UUID
    sequence: int
    error: str


@dataclass(frozen=True)
class ConflictingRecord:
    """A record whose report was kept beside: another report of *run* was stored before."""

    chain: uuid.UUID
    sequence: int
    run: uuid.UUID


@dataclass(frozen=True)
class Receipt:
    """What became of the records of one request.

    *records* cover the refused and the conflicting records too, but no premature ones: those are sent again.
    """

    reporter: str
    issued_at: datetime
    records: tuple[RecordRange, ...]
    refused: tuple[RefusedRecord, ...] = ()
    conflicts: tuple[ConflictingRecord, ...] = ()

    def to_document(self) -> str:
        """Return the JSON that the server signs; long errors are cut."""
        document = {
            "reporter": self.reporter,
            "issued_at": rfc3339(self.issued_at),
            "records": [
                {"chain": str(part.chain), "first": part.first, "last": part.last, "hash": part.hash}
                for part in self.records
            ],
            "refused": [
                {
                    "chain": str(each.chain),
                    "sequence": each.sequence,
                    "error": clean_text(each.error)[:_MOST_ERROR_CHARACTERS],
                }
                for each in self.refused
            ],
            "conflicts": [
                {"chain": str(each.chain), "sequence": each.sequence, "run": str(each.run)}
                for each in self.conflicts
            ],
        }
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_document(cls, document: str | bytes) -> Receipt:
        """Parse the JSON of a receipt strictly. Raises MalformedReceipt if *document* is none."""
        try:
            fields = Fields(parse_object(document, max_bytes=_MOST_BYTES))
            return cls(
                fields.text("reporter", maximum=200, empty=False),
                fields.time("issued_at"),
                tuple(_range(each) for each in fields.each("records")),
                tuple(
                    RefusedRecord(
                        _uuid(each, "chain"), each.integer("sequence", minimum=0), each.text("error")
                    )
                    for each in fields.each("refused")
                ),
                tuple(
                    ConflictingRecord(
                        _uuid(each, "chain"), each.integer("sequence", minimum=0), _uuid(each, "run")
                    )
                    for each in fields.each("conflicts")
                ),
            )
        except Unfit as error:
            raise MalformedReceipt(str(error)) from None


def _range(fields: Fields) -> RecordRange:
    first = fields.integer("first", minimum=0)
    return RecordRange(
        _uuid(fields, "chain"),
        first,
        fields.integer("last", minimum=first),
        fields.text("hash", pattern="[0-9a-f]{64}"),
    )


def _uuid(fields: Fields, name: str) -> uuid.UUID:
    return uuid.UUID(fields.text(name, pattern=UUID_PATTERN))
