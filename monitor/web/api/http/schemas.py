"""Base classes and types of what the API accepts and answers.

A body is a ``Body``: keys that it does not declare are refused. A time is a ``Time``: RFC 3339 with a zone.
The description of a field or parameter is that of its name in ``vocabulary``, unless it has its own.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Annotated, Any, TypeVar, get_args

from ninja import Path
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

EARLIEST_YEAR, LATEST_YEAR = 1900, 2200
MOST_CHARACTERS = 200  # of a name
_RFC3339 = re.compile(
    r"(?P<minute>\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d):(?P<second>[0-5]\d|60)"
    r"(?P<fraction>\.\d+)?(?P<zone>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


class Body(BaseModel, extra="forbid", strict=True):
    """A JSON object that a client sends; numbers and booleans are no texts. Enumerations are ``Choice``."""

    @field_validator("*", mode="before")
    @classmethod
    def _whole(cls, value: Any, info: ValidationInfo) -> Any:
        """Return 3 for 3.0 where a whole number is expected: JSON has one kind of number."""
        if type(value) is not float or not value.is_integer():
            return value
        declared = cls.model_fields[info.field_name or ""].annotation
        return int(value) if declared is int or int in get_args(declared) else value


def parse_time(value: Any) -> datetime:
    """Return the time that *value*, an RFC 3339 text or an aware datetime, means, in UTC.

    A leap second is the second after it. Raises ValueError: *value* is no such time, or one whose arithmetic
    could overflow.
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    parts = _RFC3339.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        raise ValueError(
            f"expected a time with its zone, such as 2026-03-01T12:00:00Z, got {str(value)[:100]!r}"
            " (in a URL, + is written %2B)"
        )
    is_leap_second = parts["second"] == "60"
    second, zone = "59" if is_leap_second else parts["second"], parts["zone"].upper()
    time = datetime.fromisoformat(f"{parts['minute'].upper()}:{second}{parts['fraction'] or ''}{zone}")
    if not EARLIEST_YEAR <= time.year <= LATEST_YEAR:
        raise ValueError(f"expected a time of the years {EARLIEST_YEAR} to {LATEST_YEAR}, got {value[:100]}")
    return time.astimezone(UTC) + timedelta(seconds=is_leap_second)


Time = Annotated[
    datetime, BeforeValidator(parse_time), WithJsonSchema({"type": "string", "format": "date-time"})
]
_E = TypeVar("_E", bound=Enum)
# A member of an enumeration in a body, given by its value.
Choice = Annotated[_E, Field(strict=False)]
# The id of a row in a path.
RowId = Annotated[int, Path(ge=1, lt=2**63)]
# The number of a segment of a series.
Segment = Annotated[int, Field(ge=0, lt=2**31)]
# A name of a series, site, ... in a body; a filter by name in a query, where the empty text means none.
Name = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)]
NameFilter = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]
