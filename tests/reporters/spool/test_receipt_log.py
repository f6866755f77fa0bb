"""Logs of receipts: what is torn or damaged is ignored."""

from __future__ import annotations

from pathlib import Path

from reporters.spool.receipt_log import DELIVERED, DROPPED, ReceiptLogs

HASH = "a" * 64


def names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def read(directory: Path) -> ReceiptLogs:
    logs = ReceiptLogs(directory)
    logs.refresh(names(directory))
    return logs


def test_each_process_reads_what_the_others_have_written(tmp_path: Path) -> None:
    first, second = ReceiptLogs(tmp_path), ReceiptLogs(tmp_path)
    first.add(DELIVERED, 0, 3, HASH)
    second.refresh(names(tmp_path))
    second.add(DROPPED, 4, 5, "-")
    first.refresh(names(tmp_path))
    for logs in (first, second, read(tmp_path)):
        assert list(logs.done) == [(0, 5)]
        assert list(logs.dropped) == [(4, 5)]


def test_a_torn_or_damaged_line_releases_nothing(tmp_path: Path) -> None:
    logs = ReceiptLogs(tmp_path)
    logs.add(DELIVERED, 0, 3, HASH)
    logs.add(DELIVERED, 10, 12, HASH)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    second = whole.index(b"\n") + 1
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert list(read(tmp_path).done) == ([(0, 3)] if length >= second else [])
    for offset in range(second):
        file.write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
        assert (0, 3) not in list(read(tmp_path).done), offset
        assert all(first in {0, 10} and last <= 12 for first, last in read(tmp_path).done)


def test_a_compacted_log_says_the_same(tmp_path: Path) -> None:
    logs, other = ReceiptLogs(tmp_path), ReceiptLogs(tmp_path)
    for first in range(0, 40, 4):
        logs.add(DELIVERED, first, first + 1, HASH)
    logs.add(DROPPED, 50, 51, "-")
    other.refresh(names(tmp_path))
    logs.compact(10, is_durable=False, is_forced=True)
    logs.add(DELIVERED, 60, 61, HASH)
    other.refresh(names(tmp_path))
    assert list(read(tmp_path).done) == [(n, n + 1) for n in (*range(12, 40, 4), 50, 60)]
    assert list(read(tmp_path).dropped) == [(50, 51)]
    assert list(other.done) == [(n, n + 1) for n in (*range(0, 40, 4), 50, 60)]
