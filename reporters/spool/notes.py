"""The bodies of records that are no reports: the start of a chain, and what was dropped from the spool."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime

from reporters.fields import Fields, Unfit, parse_object
from reporters.report import rfc3339

_MOST_BYTES = 4096
_MOST_REASON_CHARACTERS = 500
_HASH = "([0-9a-f]{64})?"
UUID_PATTERN = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


class MalformedNote(ValueError):
    """The body of a note breaks its format; the message names the field."""


@dataclass(frozen=True)
class StartNote:
    """The body of record 0 of a chain; *previous_chain* is None if no earlier chain is known."""

    reporter: str
    at: datetime
    previous_chain: uuid.UUID | None
    previous_head: str

    def to_body(self) -> bytes:
        previous = "" if self.previous_chain is None else str(self.previous_chain)
        return _json(
            {
                "reporter": self.reporter,
                "at": rfc3339(self.at),
                "previous_chain": previous,
                "previous_head": self.previous_head,
            }
        )

    @classmethod
    def from_body(cls, body: bytes) -> StartNote:
        """Parse strictly. Raises MalformedNote if *body* is not that of a start."""
        try:
            fields = Fields(parse_object(body, max_bytes=_MOST_BYTES))
            chain = fields.text("previous_chain", pattern=f"({UUID_PATTERN})?")
            return cls(
                fields.text("reporter", maximum=200, empty=False),
                fields.time("at"),
                uuid.UUID(chain) if chain else None,
                fields.text("previous_head", pattern=_HASH),
            )
        except Unfit as error:
            raise MalformedNote(str(error)) from None


@dataclass(frozen=True)
class DroppedNote:
    """The body of a record that reports records *first* to *last* of *chain* as removed, not delivered."""

    chain: uuid.UUID
    first: int
    last: int
    reason: str

    def to_body(self) -> bytes:
        reason = self.reason[:_MOST_REASON_CHARACTERS]
        return _json({"chain": str(self.chain), "first": self.first, "last": self.last, "reason": reason})

    @classmethod
    def from_body(cls, body: bytes) -> DroppedNote:
        """Parse strictly. Raises MalformedNote if *body* is not that of a note of dropped records."""
        try:
            fields = Fields(parse_object(body, max_bytes=_MOST_BYTES))
            first = fields.integer("first", minimum=0)
            return cls(
                uuid.UUID(fields.text("chain", pattern=UUID_PATTERN)),
                first,
                fields.integer("last", minimum=first),
                fields.text("reason", maximum=_MOST_REASON_CHARACTERS),
            )
        except Unfit as error:
            raise MalformedNote(str(error)) from None


def _json(document: dict[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
