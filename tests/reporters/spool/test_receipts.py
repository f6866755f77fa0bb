"""Receipts and notes: strict JSON."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime

import pytest

from reporters.spool.notes import DroppedNote, MalformedNote, StartNote
from reporters.spool.receipts import ConflictingRecord, MalformedReceipt, Receipt, RecordRange, RefusedRecord

CHAIN, RUN = uuid.UUID(int=1), uuid.UUID(int=2)
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
RECEIPT = Receipt(
    "ncsa",
    NOON,
    (RecordRange(CHAIN, 0, 9, "a" * 64),),
    (RefusedRecord(CHAIN, 3, "there is no series 'x'"),),
    (ConflictingRecord(CHAIN, 4, RUN),),
)


def test_a_receipt_is_read_as_it_was_written() -> None:
    assert Receipt.from_document(RECEIPT.to_document()) == RECEIPT


def test_the_longest_receipt_is_short_enough_to_be_read() -> None:
    refused = tuple(RefusedRecord(CHAIN, number, "\U0001f600\0" * 5000) for number in range(500))
    receipt = Receipt("ncsa", NOON, tuple(RecordRange(CHAIN, n, n, "a" * 64) for n in range(500)), refused)
    assert Receipt.from_document(receipt.to_document()).refused[499].error == "\U0001f600\ufffd" * 500


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("records", 0, "hash"), "A" * 64, r"records\[0\].hash: expected text like"),
        (("records", 0, "last"), -1, r"records\[0\].last: expected an integer >= 0"),
        (("records", 0, "chain"), "../../etc", r"records\[0\].chain: expected text like"),
        (("refused", 0, "sequence"), True, r"refused\[0\].sequence: expected an integer"),
        (("issued_at",), "yesterday", "issued_at: expected a time"),
        (("reporter",), "", "reporter: expected text that is not empty"),
        (("conflicts",), None, "conflicts: expected a list"),
    ],
)
def test_a_malformed_receipt_is_refused(path: tuple[str | int, ...], value: object, message: str) -> None:
    document = json.loads(RECEIPT.to_document())
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(MalformedReceipt, match=message):
        Receipt.from_document(json.dumps(document))


@pytest.mark.parametrize(
    "start", [StartNote("ncsa", NOON, None, ""), StartNote("ncsa", NOON, CHAIN, "b" * 64)]
)
def test_a_start_is_read_as_it_was_written(start: StartNote) -> None:
    assert StartNote.from_body(start.to_body()) == start


def test_a_note_of_dropped_records_is_read_as_it_was_written() -> None:
    note = DroppedNote(CHAIN, 3, 9, "the spool is full")
    assert DroppedNote.from_body(note.to_body()) == note
    with pytest.raises(MalformedNote, match="last: expected an integer >= 9"):
        DroppedNote.from_body(DroppedNote(CHAIN, 9, 3, "").to_body())
    with pytest.raises(MalformedNote, match="expected text"):
        StartNote.from_body(note.to_body())
