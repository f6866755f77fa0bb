"""The content lines of an iCalendar file (RFC 5545, section 3.1), with the numbers of their lines.

The library that parses the values knows no line numbers, and expands some rules while it parses: lines are
read and checked first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from monitor.runs.maintenance.feeds.base import InvalidFeed, check_size

MAX_EVENTS, MAX_DEPTH = 20_000, 5
_LINE = re.compile(r'([A-Za-z0-9-]+)((?:;[^":]*(?:"[^"]*"[^":]*)*)?):(.*)', re.DOTALL)


@dataclass(frozen=True)
class ContentLine:
    number: int
    name: str
    value: str


@dataclass
class EventLines:
    """The lines of one event."""

    number: int  # of its line BEGIN:VEVENT
    lines: list[ContentLine] = field(default_factory=list)

    def line_of(self, name: str) -> int:
        """Return the number of the first line *name*, or of the beginning of the event."""
        return next((line.number for line in self.lines if line.name == name), self.number)

    def value(self, name: str) -> str:
        return next((line.value.strip() for line in self.lines if line.name == name), "")


@dataclass(frozen=True)
class CalendarLines:
    """The events in the order of the file, and the rules of time zones."""

    events: Sequence[EventLines]
    zone_rules: Sequence[ContentLine]


def read_lines(data: bytes) -> tuple[str, CalendarLines]:
    """Return the text of *data* and its lines.

    Raises:
        InvalidFeed: *data* is empty, huge or no text, or its components are not nested as one calendar.
    """
    check_size(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidFeed("this is no text in UTF-8", data.count(b"\n", 0, error.start) + 1) from None
    if "\0" in text:
        raise InvalidFeed("this is no text", text.count("\n", 0, text.index("\0")) + 1)
    return text, _components(_unfold(text))


def _unfold(text: str) -> Iterator[ContentLine]:
    number, parts = 0, [""]
    for count, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line[:1] in {" ", "\t"} and number:
            parts.append(line[1:])
        elif line.strip():
            if number:
                yield _content_line(number, "".join(parts))
            number, parts = count, [line]
    if number:
        yield _content_line(number, "".join(parts))


def _content_line(number: int, text: str) -> ContentLine:
    match = _LINE.fullmatch(text)
    if match is None:
        raise InvalidFeed(f"expected NAME:value, got {text[:40]!r}", number)
    return ContentLine(number, match[1].upper(), match[3])


def _components(lines: Iterator[ContentLine]) -> CalendarLines:
    events: list[EventLines] = []
    zone_rules: list[ContentLine] = []
    opened: list[str] = []
    has_ended = False
    for line in lines:
        kind = line.value.strip().upper()
        if not opened and (line.name != "BEGIN" or kind != "VCALENDAR" or has_ended):
            raise InvalidFeed("expected one calendar: BEGIN:VCALENDAR to END:VCALENDAR", line.number)
        if line.name == "BEGIN":
            opened.append(kind)
            if kind == "VEVENT":
                events.append(EventLines(line.number))
            _check_counts(len(opened), len(events), line.number)
        elif line.name == "END":
            if opened.pop() != kind:
                raise InvalidFeed(f"END:{kind[:40]} ends a component that is not open", line.number)
            has_ended = not opened
        elif opened[-1] == "VEVENT":
            events[-1].lines.append(line)
        elif "VTIMEZONE" in opened and line.name == "RRULE":
            zone_rules.append(line)
    if opened or not has_ended:
        raise InvalidFeed("the file is truncated: expected END:VCALENDAR at its end")
    return CalendarLines(events, zone_rules)


def _check_counts(depth: int, events: int, line: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidFeed(f"components are nested deeper than {MAX_DEPTH}", line)
    if events > MAX_EVENTS:
        raise InvalidFeed(f"the calendar has more than {MAX_EVENTS:,} events", line)
