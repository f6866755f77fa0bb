"""Sketches: SQL and Python compute the same keys, and quantiles have the documented error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.depot.rollups import ddsketch

RESOLVED = 1.0001 * ddsketch.RELATIVE_ERROR
finite = st.floats(allow_nan=False, allow_infinity=False)
usual = st.floats(ddsketch.LEAST, ddsketch.MOST) | st.floats(-ddsketch.MOST, -ddsketch.LEAST) | st.just(0.0)


def of_database(values: list[float]) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_agg(monitor_sketch_key(value) ORDER BY place)"
            " FROM unnest(%s::float8[]) WITH ORDINALITY AS given (value, place)",
            [values],
        )
        return list(cursor.fetchone()[0])


@pytest.mark.django_db
@given(st.lists(finite, min_size=1, max_size=50))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_database_computes_the_same_keys(values: list[float]) -> None:
    """Except for values on the edge of two buckets, where a logarithm may be rounded to either."""
    for value, key in zip(values, of_database(values), strict=True):
        assert abs(key - ddsketch.key(value)) <= (1 if on_an_edge(value) else 0), value


def on_an_edge(value: float) -> bool:
    size = min(max(abs(value), ddsketch.LEAST), ddsketch.MOST)
    buckets = math.log(size) / math.log(ddsketch.GAMMA)
    return abs(buckets - round(buckets)) < 1e-9


@given(st.lists(finite, max_size=50))
def test_keys_of_an_array_equal_those_of_its_values(values: list[float]) -> None:
    assert ddsketch.keys(np.array(values, dtype=float)).tolist() == [ddsketch.key(value) for value in values]


@given(usual)
def test_the_value_of_a_key_is_within_one_percent(value: float) -> None:
    assert abs(ddsketch.value(ddsketch.key(value)) - value) <= RESOLVED * abs(value)


@given(st.lists(usual, min_size=1, max_size=100), st.sampled_from([0.0, 0.05, 0.5, 0.95, 0.99, 1.0]))
def test_a_quantile_is_within_one_percent(values: list[float], q: float) -> None:
    exact = sorted(values)[max(math.ceil(q * len(values)), 1) - 1]
    estimate = ddsketch.quantile((ddsketch.key(value) for value in values), q)
    assert estimate is not None
    assert abs(estimate - exact) <= RESOLVED * abs(exact)


def test_values_beyond_the_largest_have_the_last_key() -> None:
    assert [ddsketch.key(ddsketch.MOST), ddsketch.key(1.7e308), ddsketch.key(-1.7e308)] == [
        ddsketch.MOST_KEY,
        ddsketch.MOST_KEY,
        -ddsketch.MOST_KEY,
    ]


def test_an_empty_sketch_has_no_quantile() -> None:
    assert ddsketch.quantile([], 0.5) is None


@given(st.integers(-ddsketch.MOST_KEY, ddsketch.MOST_KEY))
def test_values_of_keys_ascend_and_lie_in_their_buckets(key: int) -> None:
    assert ddsketch.values(np.array([key]))[0] == ddsketch.value(key)
    if 1 < abs(key) < ddsketch.MOST_KEY:  # the outer keys stand for 0 and MOST
        assert ddsketch.key(ddsketch.value(key)) == key
