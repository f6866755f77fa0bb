"""Sample arrays have the same content as rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import DatabaseError, connection, transaction

from monitor.core.db.timestamps import micros, moment
from monitor.depot.engines.engine import Engine
from monitor.depot.samples import sample_arrays, write
from monitor.depot.samples.read import samples_of
from monitor.depot.samples.write import SampleRow

HOUR = timedelta(hours=1)
METRIC, OTHER = 1, 2
SELECTIONS: list[dict[str, Any]] = [  # hours after noon
    {},
    {"passed_only": False},
    {"newest": 3},
    {"newest": 3, "passed_only": False},
    {"newest": 100},
    {"start": 2},
    {"end": 5},
    {"start": 2, "end": 5, "passed_only": False},
    {"known_by": 6},
    {"known_by": 6, "newest": 2},
    {"start": 30},
]


@pytest.fixture
def stored(db: None, noon: datetime) -> None:
    """Store ten hours of two metrics; every third run failed, every fourth report is a day late."""
    rows = [
        SampleRow(
            metric_id=metric,
            time=noon + hour * HOUR,
            known_at=noon + hour * HOUR + (24 * HOUR if hour % 4 == 0 else timedelta(seconds=1.5)),
            value=hour / 3 if metric == METRIC else -1.0,
            passed=hour % 3 != 0,
        )
        for metric in (METRIC, OTHER)
        for hour in range(10)
    ]
    write.write(rows)


def of_rows(**selection: Any) -> list[tuple[Any, ...]]:
    return [(row.time, row.known_at, row.value, row.passed) for row in samples_of([METRIC], **selection)]


def of_arrays(**selection: Any) -> list[tuple[Any, ...]]:
    samples = sample_arrays.read(METRIC, **selection)
    assert samples.dtype == sample_arrays.SAMPLE
    times = [[moment(time) for time in samples[name]] for name in ("time", "known_at")]
    return list(zip(*times, samples["value"].tolist(), samples["passed"].tolist(), strict=True))


def test_an_array_equals_the_rows_on_every_engine(quick_engine: Engine, stored: None, noon: datetime) -> None:
    hours = ("start", "end", "known_by")
    for selection in SELECTIONS:
        arguments = {
            name: noon + value * HOUR if name in hours else value for name, value in selection.items()
        }
        assert of_arrays(**arguments) == of_rows(**arguments), selection


def test_an_unknown_metric_has_an_empty_array(stored: None) -> None:
    assert len(sample_arrays.read(3)) == 0


def test_more_samples_than_the_limit_are_refused(stored: None) -> None:
    assert len(sample_arrays.read(METRIC, passed_only=False, at_most=10)) == 10
    with pytest.raises(sample_arrays.TooManySamples, match="more than 9 values"):
        sample_arrays.read(METRIC, passed_only=False, at_most=9)


def test_times_are_numpy_microseconds(stored: None, noon: datetime) -> None:
    first = sample_arrays.read(METRIC, passed_only=False)["time"].view("datetime64[us]")[0]
    assert first == np.datetime64(noon.replace(tzinfo=None))
    assert moment(first.astype(int)) == noon
    assert micros(noon) == first.astype(int)


def test_uncommitted_samples_are_read_in_their_transaction(stored: None, noon: datetime) -> None:
    with transaction.atomic():
        write.write([SampleRow(METRIC, noon - HOUR, noon, 7.0, True)])
        assert sample_arrays.read(METRIC)["value"][0] == 7.0


def test_database_errors_are_those_of_django(stored: None, noon: datetime) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE monitor_sample RENAME value TO worth")
        with pytest.raises(DatabaseError, match="value"):
            sample_arrays.read(METRIC)
        transaction.set_rollback(True)
