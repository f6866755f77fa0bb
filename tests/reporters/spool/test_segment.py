"""Segments: a torn tail is ignored, damage is found, and no other record suffers."""

from __future__ import annotations

import uuid

import pytest

from reporters.spool.records import Record, encode, next_record
from reporters.spool.segment import file_name, first_of, header, parse_header, scan
from tests.reporters.spool.delivery import NOON

CHAIN = uuid.UUID(int=1)


def records(count: int = 4) -> list[Record]:
    made = [next_record(CHAIN, None, "start", b'{"at":"record 1 report 2"}')]
    for number in range(1, count):
        made.append(next_record(CHAIN, made[-1], "report", b'{"n":%d}' % number))
    return made


def test_the_records_before_each_cut_are_found_and_the_tail_is_torn() -> None:
    made = records()
    whole = b"".join(map(encode, made))
    ends = [len(b"".join(map(encode, made[:count]))) for count in range(len(made) + 1)]
    for length in range(len(whole) + 1):
        found = scan(whole[:length], 0, CHAIN, [])
        complete = max(count for count, end in enumerate(ends) if end <= length)
        assert (found.records, found.end) == (made[:complete], ends[complete])
        assert (found.damage, found.rest) == ([], None), length


@pytest.mark.parametrize("bit", [1, 16, 128])
def test_a_changed_byte_damages_its_own_record_only(bit: int) -> None:
    made = records()
    for number, broken in enumerate(made):
        before = b"".join(map(encode, made[:number]))
        after = b"".join(map(encode, made[number + 1 :]))
        data = encode(broken)
        for offset in range(len(data)):
            changed = data[:offset] + bytes([data[offset] ^ bit]) + data[offset + 1 :]
            found = scan(before + changed + after, 0, CHAIN, [])
            assert found.records == made[:number] + made[number + 1 :], (number, offset)
            (damage,) = [*found.damage, *([found.rest] if found.rest else [])]
            assert (damage.data, damage.after) == (changed, number - 1)


def test_a_last_record_that_seems_longer_than_it_is_is_damaged_not_torn() -> None:
    made = records()
    data = b"".join(map(encode, made)).replace(b"record 3 report 7 ", b"record 3 report 9 ")
    found = scan(data, 0, CHAIN, [])
    assert found.records == made[:3]
    assert found.rest is not None


def test_a_scan_continues_where_the_last_one_ended() -> None:
    made = records()
    whole = b"".join(map(encode, made))
    first = scan(whole[:-3], 0, CHAIN, [])
    second = scan(whole[first.end :], first.end, CHAIN, first.records)
    assert (first.records + second.records, second.end) == (made, len(whole))


def test_a_record_of_another_history_is_damage() -> None:
    made = records()
    other = next_record(CHAIN, next_record(CHAIN, None, "start", b"{}"), "report", b"[]")
    found = scan(encode(made[0]) + encode(other) + encode(made[1]), 0, CHAIN, [])
    assert found.records == made[:2]
    assert [damage.data for damage in found.damage] == [encode(other)]


def test_absent_records_are_no_damage() -> None:
    made = records()
    found = scan(encode(made[0]) + encode(made[3]), 0, CHAIN, [])
    assert (found.records, found.damage) == ([made[0], made[3]], [])


def test_a_header_names_chain_and_time() -> None:
    line = header(CHAIN, NOON)
    assert parse_header(line + b"x", CHAIN) == (NOON, len(line))
    assert parse_header(line, uuid.UUID(int=2)) == (None, 0)
    assert parse_header(line[:-1], CHAIN) == (None, 0)
    assert parse_header(line.replace(b"2026", b"20x6"), CHAIN) == (None, 0)


def test_the_name_of_a_segment_sorts_by_its_first_record() -> None:
    assert first_of(file_name(1234)) == 1234
    assert sorted([file_name(10), file_name(9)]) == [file_name(9), file_name(10)]
    assert first_of("x.segment") is None
