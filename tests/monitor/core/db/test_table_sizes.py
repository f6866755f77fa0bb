"""The number of rows of a table is known whether or not it has been analysed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction

from monitor.core.db import partitions
from monitor.core.db.table_sizes import COUNTED_BYTES, table_size
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


def test_rows_of_a_table_never_analysed_are_counted(quick_engine: Engine, noon: datetime) -> None:
    assert table_size("monitor_sample").rows == 0
    store(noon)
    assert table_size("monitor_sample").rows == COUNT
    assert table_size("monitor_dayrollup").rows == 0


def test_rows_added_since_the_last_analyze_are_estimated(db: None) -> None:
    run("CREATE TABLE half AS SELECT generate_series(1, 200000) AS n")
    run("ANALYZE half")
    run("INSERT INTO half SELECT generate_series(1, 200000)")
    assert table_size("half").rows == pytest.approx(400_000, rel=0.05)


def test_rows_of_a_large_table_are_estimated_from_a_sample(db: None) -> None:
    run("CREATE TABLE large AS SELECT n FROM generate_series(1, 700000) AS n")
    assert table_size("large").bytes > 1.3 * COUNTED_BYTES
    assert table_size("large").rows == pytest.approx(700_000, rel=0.1)
