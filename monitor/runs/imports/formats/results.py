"""What formats with results of storage benchmarks share: their options, and their measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from monitor.runs.imports.formats import text
from monitor.runs.imports.formats.base import InvalidField, InvalidOption, Option
from probes.base import Measurement, Value

MIB = 1024.0**2
RESOURCE = {
    "resource": Option("resource whose storage was measured; it exists, or is created", metavar="NAME")
}
LOCAL_TIMES = {
    **RESOURCE,
    "timezone": Option("IANA time zone of the times, which the tool prints without one", "UTC", "ZONE"),
}
_TEXT_CHARACTERS = 100


def zone(options: Mapping[str, str]) -> ZoneInfo:
    """Return the time zone in *options*. Raises InvalidOption if there is none of this name."""
    try:
        return ZoneInfo(options["timezone"])
    except (OSError, ValueError, KeyError):
        raise InvalidOption(
            f"expected a time zone such as UTC, got {options['timezone']!r}", "timezone"
        ) from None


def measurements(values: Iterable[tuple[str, object, float, str]]) -> list[Measurement]:
    """Return a measurement for each (name, number, factor, unit) that was measured.

    A tool prints NaN or a negative number for a value that it has not measured.
    """
    return [
        Measurement(name, value * factor, unit)
        for name, value, factor, unit in values
        if isinstance(value, int | float) and math.isfinite(value * factor) and value >= 0
    ]


def scalars(source: Mapping[str, object], names: Mapping[str, str]) -> dict[str, Value]:
    """Return the texts and numbers of *source*, by the names that *names* gives to its keys."""
    return {
        name: text.printable(value)[:_TEXT_CHARACTERS] if isinstance(value, str) else value
        for key, name in names.items()
        if isinstance(value := source.get(key), str | int | float) and value != ""
    }


def apart(field: str, slot: datetime, number: int) -> datetime:
    """Return *slot* with *number* as its microseconds: results of the same second have different slots.

    Raises:
        InvalidField: the number is too large.
    """
    if not 0 <= number < 1_000_000:
        raise InvalidField(field, "at most a million results", number)
    return slot.replace(microsecond=0) + timedelta(microseconds=number)


def elapsed(field: str, slot: datetime, seconds: float) -> datetime:
    """Return the time *seconds* after *slot*. Raises InvalidField if there is no such time."""
    try:
        return slot + timedelta(seconds=seconds)
    except OverflowError:
        raise InvalidField(field, "seconds of a benchmark", seconds) from None
