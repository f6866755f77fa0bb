"""Natural order of names: ``site2`` comes before ``site10``, in any case of letters.

A table of named things has a stored column ``sort_name``, computed by the database; queries sort by it, and a
page of a list begins behind one of its values. The text orders by code point, so neither the locale of the
database nor its build counts: the embedded PostgreSQL has no ICU.
"""

from __future__ import annotations

import re
from typing import Any

from django.db import models
from django.db.models import F, Func
from django.db.models.functions import Collate

_DIGITS = 12  # to which each number is padded; longer ones keep their digits
_NUMBER = re.compile("[0-9]+")


# Of a query that finds a few rows by their text: the same order, but no index has this collation. Reading all
# rows in the order of an index takes longer than reading the table, or an index alone.
UNINDEXED_ORDER = Collate("sort_name", "POSIX")


class SortName(Func):
    """The text in whose order names are in natural order, of a column with names.

    The name itself follows behind a space, which sorts before every character of a name: no two names have
    the same text.
    """

    template = (
        r"""(regexp_replace(regexp_replace(lower(%(expressions)s COLLATE "C"), '[0-9]+', """
        rf"""'{"0" * _DIGITS}\&', 'g'), '0{{0,{_DIGITS}}}([0-9]{{{_DIGITS},}})', '\1', 'g')"""
        r""" || ' ' || %(expressions)s)"""
    )


def sort_name_field() -> Any:
    """Return the column ``sort_name`` of a model with the field ``name``."""
    return models.GeneratedField(
        expression=SortName(F("name")),
        output_field=models.TextField(db_collation="C"),
        db_persist=True,
    )


def sort_name(name: str) -> str:
    """Return what the database has in ``sort_name`` for *name*, which is ASCII; a key for ``sorted``."""
    return f"{_NUMBER.sub(_padded, name.lower())} {name}"


def _padded(number: re.Match[str]) -> str:
    text = "0" * _DIGITS + number[0]
    zeros = len(text) - len(text.lstrip("0"))
    return text[min(zeros, _DIGITS, len(text) - _DIGITS) :]
