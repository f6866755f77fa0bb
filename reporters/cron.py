"""Five-field cron with hashed numbers: pure functions of (expression, name).

The fields are minute, hour, day, month and weekday. Each is a comma-separated list of ``*``, numbers, names
such as ``JAN``, ranges, steps and hashed numbers:

- ``H`` is a number hashed from the name of the series, over the full range of the field. Hashing spreads
  thousands of series evenly, and a restart does not change the numbers.
- ``H(0-29)`` is a number hashed over this range.
- ``H/15`` is every 15th value from a hashed start.
- ``H(0-29)/10`` is every 10th value of the range from a hashed start.
- ``?`` is ``H`` and ``?-59/10`` is ``H(0-59)/10``, for compatibility with Inca.

A name such as ``@daily`` replaces the whole expression; ``NAMED`` maps each such name to an expression with
hashed numbers. As in Vixie cron, a day must match the day field *or* the weekday field; if one of the two
fields begins with ``*``, a day must match both.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar, cast

from reporters.fields import shown

Numbers = TypeVar("Numbers", "tuple[int, ...]", "frozenset[int]")

MAX_CHARACTERS = 200
NAMED = {
    "@hourly": "H * * * *",
    "@daily": "H H * * *",
    "@midnight": "H H(0-2) * * *",
    "@weekly": "H H * * H",
    "@monthly": "H H H * *",
    "@yearly": "H H H H *",
    "@annually": "H H H H *",
}
_DAY = timedelta(days=1)
# The most days of each month, by its number.
_DAYS_OF_MONTH = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_HASHED = re.compile(r"[H?](?:\((\w+)-(\w+)\)|-(\w+))?(?:/(\w+))?", re.ASCII)
_PLAIN = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\w+))?", re.ASCII)
_LAST_OR_NTH = re.compile(r"\d*L(?:-\d+)?|[A-Z]{3}L|\d*L?W|\w+#\w*", re.ASCII)


class InvalidSchedule(ValueError):
    """A schedule is unusable; the message names the invalid part, its value, and what was expected."""


@dataclass(frozen=True)
class Cron:
    """A parsed expression. Two expressions that match the same minutes of the same days are equal."""

    minutes: tuple[int, ...]  # sorted
    hours: tuple[int, ...]  # sorted
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    either: bool  # a day must match *days* or *weekdays*; if false, both
    text: str = field(compare=False)  # plain cron, every H replaced by its number

    def matching_days(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Yield the midnights of matching days from midnight *first* to *last*, inclusive, without a zone."""
        midnight = first
        while midnight <= last:
            if midnight.month not in self.months:
                midnight = (midnight.replace(day=28) + 4 * _DAY).replace(day=1)
                continue
            if self._matches(midnight):
                yield midnight
            midnight += _DAY

    def _matches(self, day: datetime) -> bool:
        by_number, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_number or by_weekday if self.either else by_number and by_weekday


@dataclass(frozen=True)
class _Field:
    name: str
    lowest: int
    highest: int
    highest_hashed: int  # every month has day 28; Sunday counts once
    names: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.lowest}-{self.highest}{names}"


_FIELDS = (
    _Field("minute", 0, 59, 59),
    _Field("hour", 0, 23, 23),
    _Field("day", 1, 31, 28),
    _Field("month", 1, 12, 12, _MONTHS),
    _Field("weekday", 0, 7, 6, _WEEKDAYS),
)


class _CronItem(NamedTuple):
    """One item in the list of a field: *text* is plain cron, *numbers* are the values that match."""

    text: str
    numbers: range


def parse_cron(expression: str, name: str) -> Cron:
    """Parse *expression* for the series *name*, on which hashed numbers depend.

    Raises:
        InvalidSchedule: *expression* is malformed, or no day ever matches it.
    """
    try:
        return _parse_fields(_split(expression), name)
    except InvalidSchedule as error:
        raise InvalidSchedule(f"schedule {shown(expression)}: {error}") from None


def hashed(name: str, purpose: str, size: int) -> int:
    """Return a number in [0, size), evenly spread, that depends on *name* and *purpose* alone."""
    digest = hashlib.sha256(f"{purpose}:{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % size


def suggestion(text: str, names: Sequence[str]) -> str:
    """Return ``; did you mean NAME?`` with the name most similar to *text*, or "" if none is similar."""
    import difflib  # noqa: PLC0415  # for errors only

    close = difflib.get_close_matches(text, names, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _split(expression: str) -> Sequence[str]:
    if len(expression) > MAX_CHARACTERS:
        raise InvalidSchedule(f"expected at most {MAX_CHARACTERS} characters, got {len(expression)}")
    alias = expression.strip().lower()
    if alias.startswith("@") and alias not in NAMED:
        raise InvalidSchedule(f"expected one of {' '.join(NAMED)}{suggestion(alias, list(NAMED))}")
    fields = NAMED.get(alias, expression).split()
    if len(fields) != len(_FIELDS):
        names = " ".join(each.name for each in _FIELDS)
        raise InvalidSchedule(f"expected five fields ({names}) or a name such as @hourly, got {len(fields)}")
    return fields


def _parse_fields(fields: Sequence[str], name: str) -> Cron:
    parsed = [
        [_parse_item(limits, item, name) for item in _upper(text).split(",")]
        for limits, text in zip(_FIELDS, fields)
    ]
    texts = [",".join(item.text for item in items) for items in parsed]
    minutes, hours, days, months, weekdays = (
        frozenset().union(*(item.numbers for item in items)) for items in parsed
    )
    cron = Cron(
        minutes=_shared(tuple(sorted(minutes))),
        hours=_shared(tuple(sorted(hours))),
        days=_shared(days),
        months=_shared(months),
        weekdays=_shared(frozenset(number % 7 for number in weekdays)),
        either=not (texts[2].startswith("*") or texts[4].startswith("*")),
        text=" ".join(texts),
    )
    if not cron.either and min(cron.days) > max(_DAYS_OF_MONTH[month] for month in cron.months):
        raise InvalidSchedule(f"never: day {texts[2]} is in no month of {texts[3]}")
    return cron


def _shared(numbers: Numbers) -> Numbers:
    """Return equal numbers of an earlier call, if any: most schedules have the same days and months."""
    return cast("Numbers", _first_equal(numbers))


@functools.lru_cache(maxsize=512)
def _first_equal(numbers: Hashable) -> Hashable:
    return numbers


def _upper(text: str) -> str:
    return text.upper() if text.isascii() else text  # upper() turns some non-ASCII letters into ASCII


def _parse_item(limits: _Field, item: str, name: str) -> _CronItem:
    try:
        match = _HASHED.fullmatch(item)
        return _parse_hashed(limits, match, name) if match else _parse_plain(limits, item)
    except InvalidSchedule as error:
        raise InvalidSchedule(f"{limits.name} field {shown(item)}: {error}") from None


def _parse_hashed(limits: _Field, match: re.Match[str], name: str) -> _CronItem:
    first_word, last_word, inca_last_word, step_word = match.groups()
    limits = replace(limits, highest=limits.highest_hashed)
    first = _number(limits, first_word) if first_word else limits.lowest
    last = _number(limits, last_word or inca_last_word) if last_word or inca_last_word else limits.highest
    if first > last:
        raise InvalidSchedule(f"expected a range that goes up, got {first}-{last}")
    if step_word:
        step = _step(step_word, first, last)
        start = first + hashed(name, limits.name, step)
        return _CronItem(f"{start}-{last}/{step}", range(start, last + 1, step))
    if inca_last_word:
        raise InvalidSchedule(f"expected a step, as in ?-{last}/10")
    number = first + hashed(name, limits.name, last - first + 1)
    return _CronItem(str(number), range(number, number + 1))


def _parse_plain(limits: _Field, item: str) -> _CronItem:
    if limits.name in {"day", "weekday"} and _LAST_OR_NTH.fullmatch(item):
        raise InvalidSchedule("L, W and # (last, nearest weekday, nth weekday) are not supported")
    match = _PLAIN.fullmatch(item)
    if match is None:
        raise InvalidSchedule(f"expected *, {limits.expected}, a range, a step as in */2, or H")
    first_word, last_word, step_word = match.groups()
    first = _number(limits, first_word) if first_word else limits.lowest
    last = _number(limits, last_word) if last_word else limits.highest
    if first_word and not last_word and not step_word:
        last = first
    if first > last:
        instead = f"{first}-{limits.highest},{limits.lowest}-{last}"
        raise InvalidSchedule(f"expected a range that goes up; write {first}-{last} as {instead}")
    step = _step(step_word, first, last) if step_word else 1
    return _CronItem(item, range(first, last + 1, step))


def _number(limits: _Field, word: str) -> int:
    if word in limits.names:
        return limits.lowest + limits.names.index(word)
    if not word.isdigit():
        raise InvalidSchedule(
            f"expected {limits.expected}, got {shown(word)}{suggestion(word, limits.names)}"
        )
    if not limits.lowest <= int(word) <= limits.highest:
        raise InvalidSchedule(f"expected {limits.expected}, got {shown(int(word))}")
    return int(word)


def _step(word: str, first: int, last: int) -> int:
    if first == last:
        raise InvalidSchedule(f"expected no step after {first} alone, got {shown(word)}")
    if not word.isdigit() or not 1 <= int(word) <= last - first:
        raise InvalidSchedule(f"expected a step of 1-{last - first}, got {shown(word)}")
    return int(word)
