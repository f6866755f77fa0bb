"""Rows of tables are told whether or not anybody has counted them yet."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction

from monitor.db import partitions
from monitor.db.table_sizes import COUNTED_BYTES, table_size
from monitor.depot.engines.engine import Engine
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow

COUNT = 1000


def store(first: datetime) -> None:
    rows = [
        SampleRow(1, first + timedelta(hours=hour), first + timedelta(hours=hour), float(hour), passed=True)
        for hour in range(COUNT)
    ]
    with transaction.atomic():
        partitions.create_for({row.time for row in rows})
        write.write(rows)


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_rows_that_nobody_has_analysed_are_counted(quick_engine: Engine, noon: datetime) -> None:
    assert table_size("monitor_sample").rows == 0
    store(noon)
    assert table_size("monitor_sample").rows == COUNT
    assert table_size("monitor_dayrollup").rows == 0


def test_what_came_since_they_were_is_estimated(db: None) -> None:
    run("CREATE TABLE half AS SELECT generate_series(1, 200000) AS n")
    run("ANALYZE half")
    run("INSERT INTO half SELECT generate_series(1, 200000)")
    assert table_size("half").rows == pytest.approx(400_000, rel=0.05)


def test_of_what_is_large_a_part_is_counted(db: None) -> None:
    run("CREATE TABLE large AS SELECT n FROM generate_series(1, 700000) AS n")
    assert table_size("large").bytes > 1.3 * COUNTED_BYTES
    assert table_size("large").rows == pytest.approx(700_000, rel=0.1)
