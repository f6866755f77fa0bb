"""Five-field cron with hashed numbers: pure functions of (expression, name).

The fields are minute, hour, day, month and weekday; each is a list of ``*``, numbers, names such as
``JAN``, ranges and steps, and of ``H``: a number that is hashed from the series' name over the field's full
range, so that thousands of series spread evenly and a restart changes nothing. ``H(0-29)`` is one in that
range, ``H/15`` every 15 from a hashed start, ``H(0-29)/10`` both. ``?`` is ``H``, and ``?-59/10`` is
``H(0-59)/10``: Inca has them so. The names of whole expressions (``@daily``) mean hashed ones. A day has to
match by its number *or* its weekday, unless one of these fields begins with ``*``: then by both, as in
Vixie's cron.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from reporters.fields import shown

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
_LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # days of each month
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_HASHED = re.compile(r"[H?](?:\((\w+)-(\w+)\)|-(\w+))?(?:/(\w+))?", re.ASCII)
_PLAIN = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\w+))?", re.ASCII)
_LAST_OR_NTH = re.compile(r"\d*L(?:-\d+)?|[A-Z]{3}L|\d*L?W|\w+#\w*", re.ASCII)


class InvalidSchedule(ValueError):
    """A schedule that cannot be read: says which part, what was expected and what was there. For good."""


@dataclass(frozen=True)
class Cron:
    """What an expression means. Equal if they mean the same, however that was written."""

    minutes: tuple[int, ...]  # sorted
    hours: tuple[int, ...]  # sorted
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    either: bool  # a day has to match by its number or its weekday; else by both
    text: str = field(compare=False)  # plain cron, nothing hashed any more

    def matching_days(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """The midnights from *first* to *last*, midnights without a zone, of days that match."""
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
    highest_hashed: int  # what every month has; Sunday only once
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


class _Item(NamedTuple):
    """One of a field's list: as plain cron, and the numbers that it stands for."""

    text: str
    numbers: range


def parse(expression: str, name: str) -> Cron:
    """Read *expression* for the series *name*.

    Raises:
        InvalidSchedule: it cannot be read, or no day ever matches it.
    """
    try:
        return _parse(_fields(expression), name)
    except InvalidSchedule as error:
        raise InvalidSchedule(f"schedule {shown(expression)}: {error}") from None


def resolve(expression: str, name: str) -> str:
    """Return *expression* as plain cron, every ``H`` replaced by the number hashed from *name*.

    Raises:
        InvalidSchedule: as ``parse``.
    """
    return parse(expression, name).text


def hashed(name: str, what: str, size: int) -> int:
    """A number in [0, size) that depends on *name* and *what* alone: the same everywhere, evenly spread."""
    digest = hashlib.sha256(f"{what}:{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % size


def nearest(found: str, names: Sequence[str]) -> str:
    """What to add to a message about *found*, which is none of *names*: the one that was probably meant."""
    close = difflib.get_close_matches(found, names, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _fields(expression: str) -> Sequence[str]:
    if len(expression) > MAX_CHARACTERS:
        raise InvalidSchedule(f"expected at most {MAX_CHARACTERS} characters, got {len(expression)}")
    named = expression.strip().lower()
    if named.startswith("@") and named not in NAMED:
        raise InvalidSchedule(f"expected one of {' '.join(NAMED)}{nearest(named, list(NAMED))}")
    fields = NAMED.get(named, expression).split()
    if len(fields) != len(_FIELDS):
        names = " ".join(each.name for each in _FIELDS)
        raise InvalidSchedule(f"expected five fields ({names}) or a name such as @hourly, got {len(fields)}")
    return fields


def _parse(fields: Sequence[str], name: str) -> Cron:
    read = [
        [_read_item(where, item, name) for item in _upper(text).split(",")]
        for where, text in zip(_FIELDS, fields)
    ]
    texts = [",".join(item.text for item in items) for items in read]
    minutes, hours, days, months, weekdays = (
        frozenset().union(*(i.numbers for i in items)) for items in read
    )
    cron = Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=frozenset(number % 7 for number in weekdays),
        either=not (texts[2].startswith("*") or texts[4].startswith("*")),
        text=" ".join(texts),
    )
    if not cron.either and min(cron.days) > max(_LONGEST[month] for month in cron.months):
        raise InvalidSchedule(f"never: day {texts[2]} is in no month of {texts[3]}")
    return cron


def _upper(text: str) -> str:
    return text.upper() if text.isascii() else text  # upper() makes ASCII of some other letters


def _read_item(where: _Field, item: str, name: str) -> _Item:
    try:
        match = _HASHED.fullmatch(item)
        return _read_hashed(where, match, name) if match else _read_plain(where, item)
    except InvalidSchedule as error:
        raise InvalidSchedule(f"{where.name} field {shown(item)}: {error}") from None


def _read_hashed(where: _Field, match: re.Match[str], name: str) -> _Item:
    first_word, last_word, inca_last_word, step_word = match.groups()
    limits = _Field(where.name, where.lowest, where.highest_hashed, where.highest_hashed, where.names)
    first = _number(limits, first_word) if first_word else limits.lowest
    last = _number(limits, last_word or inca_last_word) if last_word or inca_last_word else limits.highest
    if first > last:
        raise InvalidSchedule(f"expected a range that goes up, got {first}-{last}")
    if step_word:
        step = _step(step_word, first, last)
        start = first + hashed(name, where.name, step)
        return _Item(f"{start}-{last}/{step}", range(start, last + 1, step))
    if inca_last_word:
        raise InvalidSchedule(f"expected a step, as in ?-{last}/10")
    number = first + hashed(name, where.name, last - first + 1)
    return _Item(str(number), range(number, number + 1))


def _read_plain(where: _Field, item: str) -> _Item:
    if where.name in {"day", "weekday"} and _LAST_OR_NTH.fullmatch(item):
        raise InvalidSchedule("L, W and # (the last, the nearest, the nth) are not read here")
    match = _PLAIN.fullmatch(item)
    if match is None:
        raise InvalidSchedule(f"expected *, {where.expected}, a range, a step as in */2, or H")
    first_word, last_word, step_word = match.groups()
    first = _number(where, first_word) if first_word else where.lowest
    last = _number(where, last_word) if last_word else where.highest
    if first_word and not last_word and not step_word:
        last = first
    if first > last:
        instead = f"{first}-{where.highest},{where.lowest}-{last}"
        raise InvalidSchedule(f"expected a range that goes up; write {first}-{last} as {instead}")
    step = _step(step_word, first, last) if step_word else 1
    return _Item(item, range(first, last + 1, step))


def _number(where: _Field, word: str) -> int:
    if word in where.names:
        return where.lowest + where.names.index(word)
    if not word.isdigit():
        raise InvalidSchedule(f"expected {where.expected}, got {shown(word)}{nearest(word, where.names)}")
    if not where.lowest <= int(word) <= where.highest:
        raise InvalidSchedule(f"expected {where.expected}, got {shown(int(word))}")
    return int(word)


def _step(word: str, first: int, last: int) -> int:
    if first == last:
        raise InvalidSchedule(f"expected no step after {first} alone, got {shown(word)}")
    if not word.isdigit() or not 1 <= int(word) <= last - first:
        raise InvalidSchedule(f"expected a step of 1-{last - first}, got {shown(word)}")
    return int(word)
