"""Columns of rows as arrays: a column without a value for each row is refused by its name."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pytest

from monitor.web.status import column_arrays
from monitor.web.status.column_arrays import SEPARATOR, UnequalColumns

EXPRESSIONS = {
    "integer": "id",
    "real": "id::float8",
    "time": "at",
    "run": "run",
    "letter": "name",
    "outcomes": "name",
    "text": "name",
    "name": "name",
}
ROWS = """FROM (VALUES
    (1, '2026-03-01 12:00Z'::timestamptz, '00000000-0000-0000-0000-000000000001'::uuid, 'a'),
    (2, {}, {}, {}),
    (3, '2026-03-01 12:00Z', '00000000-0000-0000-0000-000000000001', 'c')
) AS rows (id, at, run, name)"""
COMPLETE = ROWS.format("now()", "gen_random_uuid()", "'b'")
WITH_NULLS = ROWS.format("NULL", "NULL", "NULL").replace("(2,", "(NULL,")

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_a_null_is_refused_by_the_name_of_its_column(kind: str) -> None:
    columns = {"well": ("text", "coalesce(name, '')"), "wanted": (kind, EXPRESSIONS[kind])}
    assert {len(column) for column in column_arrays.read(columns, COMPLETE, []).values()} == {3}
    with pytest.raises(UnequalColumns, match=r"expected 3 values .* got 2 in wanted \(") as refused:
        column_arrays.read(columns, WITH_NULLS, [])
    assert "well" not in str(refused.value)


def test_a_name_that_contains_the_separator_is_refused() -> None:
    columns = {"id": ("integer", "1"), "slug": ("name", f"'a{SEPARATOR}b'")}
    with pytest.raises(UnequalColumns, match="2 in slug"):
        column_arrays.read(columns, "FROM (VALUES (1)) AS rows", [])


def test_no_rows_are_empty_columns(noon: datetime) -> None:
    columns: dict[str, Any] = {kind: (kind, expression) for kind, expression in EXPRESSIONS.items()}
    arrays = column_arrays.read(columns, f"{COMPLETE} WHERE at > %s", [noon.replace(year=9000)])
    assert {name: len(column) for name, column in arrays.items()} == dict.fromkeys(EXPRESSIONS, 0)
    assert arrays["integer"].dtype == np.int64
