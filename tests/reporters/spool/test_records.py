"""Records: what is written is read back, and nothing else is."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporters.report import MAX_BYTES
from reporters.spool.records import (
    MalformedRecords,
    Part,
    Record,
    encode,
    encode_parts,
    first_hash,
    next_record,
    parse_parts,
)

CHAIN, OTHER = (uuid.UUID(int=number) for number in (1, 2))
bodies = st.binary(min_size=1, max_size=80) | st.sampled_from([b"\n", b"record 1 report 2 ", b"x\nchain "])


def chain_of(count: int, chain: uuid.UUID = CHAIN, body: bytes = b"{}") -> tuple[Record, ...]:
    records: list[Record] = []
    for number in range(count):
        kind = "report" if number else "start"
        records.append(next_record(chain, records[-1] if records else None, kind, body))
    return tuple(records)


def test_a_record_has_the_form_and_the_hash_of_the_protocol() -> None:
    start, report = chain_of(2)
    first = hashlib.sha256(f"gridcast chain {CHAIN}".encode()).hexdigest()
    zero = hashlib.sha256(f"{first} 0 start 2\n{{}}".encode()).hexdigest()
    one = hashlib.sha256(f"{zero} 1 report 2\n{{}}".encode()).hexdigest()
    assert encode(start) == f"record 0 start 2 {first} {zero}\n{{}}\n".encode()
    assert encode(report) == f"record 1 report 2 {zero} {one}\n{{}}\n".encode()
    part = encode_parts([Part(CHAIN, (start, report))])
    assert part == f"chain {CHAIN}\n".encode() + encode(start) + encode(report)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.lists(bodies, min_size=1, max_size=4)), min_size=1, max_size=4)
)
def test_parts_are_read_as_they_were_written(contents: list[tuple[int, list[bytes]]]) -> None:
    parts = []
    for number, (skipped, texts) in enumerate(contents):
        chain = uuid.UUID(int=number)
        records = list(chain_of(skipped + 1, chain))
        for text in texts:
            records.append(next_record(chain, records[-1], "report", text))
        parts.append(Part(chain, tuple(records[skipped:])))
    assert parse_parts(encode_parts(parts)) == parts


@given(st.data())
def test_no_changed_byte_goes_unnoticed(data: st.DataObject) -> None:
    """The name of the chain is bound by record 0 only; a server knows the owner of a chain."""
    sent = encode_parts([Part(CHAIN, chain_of(3))])
    offset = data.draw(st.integers(0, len(sent) - 1))
    changed = sent[:offset] + bytes([sent[offset] ^ data.draw(st.integers(1, 255))]) + sent[offset + 1 :]
    with pytest.raises(MalformedRecords):
        parse_parts(changed)


def test_every_cut_is_noticed_except_between_records() -> None:
    records = chain_of(3)
    sent = encode_parts([Part(CHAIN, records)])
    ends = {len(encode_parts([Part(CHAIN, records[:count])])) for count in (1, 2, 3)}
    for length in range(len(sent) + 1):
        if length in ends:
            assert parse_parts(sent[:length])[0].records == records[: sorted(ends).index(length) + 1]
        else:
            with pytest.raises(MalformedRecords):
                parse_parts(sent[:length])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([Part(CHAIN, (chain_of(3)[0], chain_of(3)[2]))], r"byte 193, chain .*01, record 2: expected"),
        ([Part(CHAIN, (chain_of(1)[0], chain_of(2, OTHER)[1]))], "record 1: expected the previous hash"),
        ([Part(CHAIN, chain_of(1, OTHER))], "record 0: expected the previous hash"),
        ([Part(CHAIN, chain_of(2)), Part(CHAIN, chain_of(3)[1:])], "record 1 of chain .*01 is there twice"),
        ([Part(CHAIN, (replace(chain_of(1)[0], kind="end"),))], "expected the kind .*, got 'end'"),
        ([Part(CHAIN, (replace(chain_of(1)[0], kind="report"),))], "expected record 0, and no"),
        ([Part(CHAIN, (replace(chain_of(2)[1], kind="start"),))], "expected record 0, and no"),
        ([Part(CHAIN, (replace(chain_of(1)[0], hash="0" * 64),))], "expected a record with the hash 0000"),
        ([Part(CHAIN, (replace(chain_of(2)[1], sequence=2**63),))], "expected a sequence number of at most"),
        ([Part(CHAIN, (replace(chain_of(2)[1], body=b"x" * (MAX_BYTES + 1)),))], "expected a body of 1 to"),
        ([Part(CHAIN, ())], "expected a line 'record SEQUENCE"),
        ([], "byte 0: expected a line 'chain UUID', got the end"),
    ],
)  # fmt: skip
def test_what_breaks_the_format_is_refused_with_the_place(parts: list[Part], message: str) -> None:
    with pytest.raises(MalformedRecords, match=message):
        parse_parts(encode_parts(parts))


def test_a_request_is_bounded_in_records_and_bytes() -> None:
    data = encode_parts([Part(CHAIN, chain_of(4))])
    assert len(parse_parts(data, most_records=4, most_bytes=len(data))[0].records) == 4
    with pytest.raises(MalformedRecords, match="expected at most 3 records"):
        parse_parts(data, most_records=3)
    with pytest.raises(MalformedRecords, match=f"expected at most {len(data) - 1} bytes, got {len(data)}"):
        parse_parts(data, most_bytes=len(data) - 1)


@pytest.mark.parametrize("number", [b"01", b"+1", b"1_0", b"-1", b"\xd9\xa1", b""])
def test_a_sequence_number_has_one_spelling(number: bytes) -> None:
    sent = encode_parts([Part(CHAIN, chain_of(2)[1:])])
    with pytest.raises(MalformedRecords):
        parse_parts(sent.replace(b"record 1 ", b"record %s " % number))


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("report", b"", "a body of 1 to"),
        ("report", b"x" * (MAX_BYTES + 1), "a body of"),
        ("start", b"x", "record 0"),
    ],
)
def test_a_record_that_would_be_refused_is_not_made(kind: str, body: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=f"cannot make record 1 of chain {CHAIN}: .*{reason}"):
        next_record(CHAIN, chain_of(1)[0], kind, body)


def test_the_first_hash_names_the_chain() -> None:
    assert first_hash(CHAIN) != first_hash(OTHER)
