"""The kernel of Lookups: a database file of SQLite is loaded, searched by an index, and scanned.

    lookups.py load FILE ROWS ROW_BYTES SEED
    lookups.py lookup FILE ROWS ROW_BYTES SEED LOOKUPS
    lookups.py scan FILE ROWS ROW_BYTES SEED SCANS

A look-up finds a row by an index that is not the order of the rows: it reads a page of the index and a page
of the table, anywhere in the file. A scan reads all rows in their order. Every answer is checked. The page
cache is told to drop the file before each look-up and each scan; the cache of SQLite holds the upper pages of
the index. Prints "COMMAND OPERATIONS BYTES SECONDS". An error ends the program with a message and status 1.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAGE_BYTES = 4096
CACHE_KIB = 1024
BATCH_ROWS = 10_000
SHIFTS = 251  # of the content of rows
PRIME = 2**31 - 1  # multiplication modulo a prime gives each row another number
FACTOR = 1_103_515_245


class Table(NamedTuple):
    path: str
    rows: int
    row_bytes: int
    seed: int


def sensor_of(row: int, seed: int) -> int:
    return (row * FACTOR + seed) % PRIME


def value_of(row: int) -> int:
    return row * 2_654_435_761 % 1_000_003


def connect(table: Table) -> sqlite3.Connection:
    connection = sqlite3.connect(table.path, isolation_level=None)
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    return connection


def drop_from_cache(path: str) -> None:
    """Tell the kernel to forget the file's pages; a system without the call measures its cache."""
    if hasattr(os, "posix_fadvise"):
        file = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def batches(table: Table) -> Iterator[list[tuple[int, int, int, bytes]]]:
    """Yield the rows in batches. Their content is random: some disks and file systems compress data."""
    size = table.row_bytes + SHIFTS
    content = random.Random(table.seed).getrandbits(8 * size).to_bytes(size, "big")  # noqa: S311
    for start in range(0, table.rows, BATCH_ROWS):
        yield [
            (row, sensor_of(row, table.seed), value_of(row), content[row % SHIFTS :][: table.row_bytes])
            for row in range(start, min(table.rows, start + BATCH_ROWS))
        ]


def load(table: Table) -> tuple[int, int, float]:
    began = time.perf_counter()
    connection = connect(table)
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute(
        "CREATE TABLE readings (id INTEGER PRIMARY KEY, sensor INTEGER, value INTEGER, content BLOB)"
    )
    for batch in batches(table):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", batch)
        connection.execute("COMMIT")
    connection.execute("CREATE UNIQUE INDEX readings_by_sensor ON readings (sensor)")
    connection.close()
    with Path(table.path).open("rb+") as file:
        os.fsync(file.fileno())
    return table.rows, Path(table.path).stat().st_size, time.perf_counter() - began


def lookup(table: Table, lookups: int) -> tuple[int, int, float]:
    chosen = random.Random(table.seed + 1)  # noqa: S311
    connection = connect(table)
    connection.execute("BEGIN")  # one transaction: otherwise each look-up reads the first page, too
    seconds = 0.0
    for _ in range(lookups):
        row = chosen.randrange(table.rows)
        drop_from_cache(table.path)
        began = time.perf_counter()
        answer = connection.execute(
            "SELECT id, value, length(content) FROM readings WHERE sensor = ?", (sensor_of(row, table.seed),)
        ).fetchone()
        seconds += time.perf_counter() - began
        check(answer, (row, value_of(row), table.row_bytes), f"row {row}")
    connection.close()
    return lookups, lookups * table.row_bytes, seconds


def scan(table: Table, scans: int) -> tuple[int, int, float]:
    size = table.rows * table.row_bytes
    expected = (table.rows, sum(map(value_of, range(table.rows))), size)
    seconds = 0.0
    for _ in range(scans):
        drop_from_cache(table.path)
        connection = connect(table)
        began = time.perf_counter()
        query = "SELECT count(*), sum(value), sum(length(content)) FROM readings"
        answer = connection.execute(query).fetchone()
        seconds += time.perf_counter() - began
        connection.close()
        check(answer, expected, "the scan")
    return scans, scans * size, seconds


def check(answer: object, expected: object, what: str) -> None:
    if answer != expected:
        raise ValueError(f"wrong answer for {what}: {answer!r} instead of {expected!r}")


def run(command: str, table: Table, numbers: list[int]) -> tuple[int, int, float]:
    if command == "load":
        return load(table, *numbers)
    if command == "lookup":
        return lookup(table, *numbers)
    if command == "scan":
        return scan(table, *numbers)
    raise ValueError("expected load, lookup or scan")


def main(arguments: list[str]) -> None:
    command, path, *numbers = arguments if len(arguments) >= 5 else ["start", "lookups"]
    try:
        rows, row_bytes, seed, *times = map(int, numbers)
        operations, size, seconds = run(command, Table(path, rows, row_bytes, seed), times)
        sys.stdout.write(f"{command} {operations} {size} {seconds:.9f}\n")
        sys.stdout.flush()
    except (sqlite3.Error, OSError, ValueError, TypeError) as error:
        sys.exit(f"lookups: cannot {command} {path}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
