"""Run the SQL of forecasts: parameters and results in binary format, rows by column name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from monitor.core.db import binary

Row = TypeVar("Row")
# By statement, which are constants of this package. Reading the names takes longer than making a row of them.
_names: dict[str, tuple[str, ...]] = {}


def fetch(row_class: type[Row], statement: str, parameters: Mapping[str, object]) -> list[Row]:
    """Return the rows of *statement*, each as ``row_class(column=value, ...)``."""
    with binary.cursor() as cursor:
        rows = cursor.execute(statement.encode(), parameters, binary=True).fetchall()
        names = _names.get(statement)
        if names is None:
            names = _names[statement] = tuple(column.name for column in cursor.description or ())
    return [row_class(**dict(zip(names, row, strict=True))) for row in rows]


def execute(statement: str, parameters: Mapping[str, object]) -> int:
    """Run *statement* and return how many rows it changed."""
    with binary.cursor() as cursor:
        return cursor.execute(statement.encode(), parameters).rowcount


def execute_each(statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Run *statement* once per row of parameters, in one round trip."""
    with binary.cursor() as cursor:
        cursor.executemany(statement.encode(), list(rows))
