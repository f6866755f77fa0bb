from __future__ import annotations

from pathlib import Path

import pytest

from reporters.spool.files import SpoolError
from reporters.spool.records import MOST_RECORDS, Part, encode_parts, parse_parts
from reporters.spool.spool import Spool
from reporters.spool.waiting import WaitingSpool


def content(directory: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def test_what_waits_is_what_would_be_delivered_and_stays(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "ncsa")
    for number in range(3):
        spool.append(b'{"number":%d}' % number)
    before = content(tmp_path)
    view = WaitingSpool(tmp_path)
    waiting, status, heads = list(view.batches()), view.status(), view.heads()
    assert content(tmp_path) == before
    assert (status, heads) == (spool.status(), spool.heads())
    delivered: list[Part] = Spool(tmp_path, "ncsa").batch()
    assert [parse_parts(encode_parts(parts)) for parts in waiting] == [delivered]
    assert [record.body for record in waiting[0][0].records[1:]] == [
        b'{"number":%d}' % number for number in range(3)
    ]


def test_a_full_spool_is_several_requests(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "ncsa", is_durable=False)
    for number in range(MOST_RECORDS + 10):
        spool.append(b'{"number":%d}' % number)
    assert [sum(len(part.records) for part in parts) for parts in WaitingSpool(tmp_path).batches()] == [
        MOST_RECORDS,
        11,  # with the start of the chain
    ]


def test_an_empty_spool_and_none_have_nothing(tmp_path: Path) -> None:
    for directory in (tmp_path / "none", tmp_path):
        view = WaitingSpool(directory)
        assert (list(view.batches()), list(view.heads()), view.status().records) == ([], [], 0)
    assert not (tmp_path / "none").exists()


def test_a_spool_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match=r"cannot read the spool .*file"):
        WaitingSpool(tmp_path / "file")
