"""Packed arrays arrive in the database as the values that were packed."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from monitor.core.db import binary
from monitor.core.db.array_parameters import Arrays

pytestmark = pytest.mark.django_db

KEY = uuid.UUID("12345678-1234-5678-1234-567812345678")
EARLY, LATE = datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 2, 27, 12, 30, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        ("bool", [True, False, None]),
        ("int2", [-(2**15), 2**15 - 1]),
        ("int4", [-(2**31), 2**31 - 1]),
        ("int8", [-(2**63), 2**63 - 1, None]),
        ("float8", [0.1, -1e300, None]),
        ("timestamptz", [EARLY, LATE]),
        ("timestamptz", [None, LATE]),
        ("uuid", [KEY, uuid.UUID(int=0)]),
        ("text", ["", "naïve ☃", None]),
        ("bytea", [b"", b"\0\xff"]),
        ("text", []),
        ("int8", []),
    ],
)
def test_items_are_read_as_they_were_packed(kind: str, items: list[Any]) -> None:
    arrays = Arrays(kind)
    with binary.cursor() as cursor:
        query = f"SELECT item FROM unnest({arrays.placeholders}) AS item"
        assert [item for (item,) in cursor.execute(query, arrays.pack([items]))] == items


def test_columns_of_different_types_keep_their_types() -> None:
    arrays = Arrays("int8", "text", "int8")
    with binary.cursor() as cursor:
        query = f"SELECT * FROM unnest({arrays.placeholders}) AS row (a, b, c)"
        assert cursor.execute(query, arrays.pack([[1, 2], ["x", "y"], [3, 4]])).fetchall() == [
            (1, "x", 3),
            (2, "y", 4),
        ]


def test_a_number_out_of_range_is_an_overflow() -> None:
    with pytest.raises(OverflowError, match="out of range"):
        Arrays("int8").pack([[2**63]])
