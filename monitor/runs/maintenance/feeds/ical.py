"""iCalendar (RFC 5545): events, with recurrences expanded in the imported period.

The categories and the location of an event may name sites. Times without a time zone and whole days are in
the zone of the calendar (``X-WR-TIMEZONE``), or in UTC.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import recurring_ical_events
from icalendar import Calendar, Event, vRecur

from monitor.runs.maintenance.feeds.base import (
    MAX_WINDOWS,
    AnnouncedWindow,
    FeedContent,
    FeedHorizon,
    InvalidFeed,
    check_window,
    content_of,
)
from monitor.runs.maintenance.feeds.content_lines import EventLines, read_lines
from monitor.runs.maintenance.feeds.recurrence import MAX_STEPS, bound, check_zone_rule

MAX_SECONDS = 20.0  # to check the rules of a feed
_TIMES = ("DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID", "SEQUENCE")


class Feed:
    summary = "iCalendar (RFC 5545), with recurrences"

    def parse(self, data: bytes, horizon: FeedHorizon) -> FeedContent:
        text, lines = read_lines(data)
        for rule in lines.zone_rules:
            check_zone_rule(rule)
        _check_identifiers(lines.events)
        try:
            calendar = Calendar.from_ical(text)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
            raise InvalidFeed(f"malformed iCalendar: {str(error)[:200]}") from error
        events = [event for event in calendar.walk("VEVENT") if isinstance(event, Event)]
        if len(events) != len(lines.events):
            raise InvalidFeed("malformed iCalendar: an event cannot be read")
        zone = _pop_zone(calendar)
        for event, event_lines in zip(events, lines.events, strict=True):
            _check_times(event, event_lines)
        _bound_rules(events, lines.events, horizon)
        left_out = Counter[str]()
        windows = list(_windows(calendar, lines.events, horizon, zone, left_out))
        return content_of(windows, horizon, left_out)


def _check_identifiers(events: Sequence[EventLines]) -> None:
    """Raise InvalidFeed for an event without UID, and for two versions of one event."""
    first: dict[tuple[str, str, str], int] = {}
    for event in events:
        uid = event.value("UID")
        if not uid:
            raise InvalidFeed("the event has no UID", event.number)
        key = (uid, event.value("RECURRENCE-ID"), event.value("SEQUENCE") or "0")
        if key in first:
            raise InvalidFeed(f"UID {uid[:80]!r} is that of the event in line {first[key]} too", event.number)
        first[key] = event.number


def _pop_zone(calendar: Calendar) -> tzinfo:
    """Remove the time zone of *calendar*, and return it."""
    # Removed: the expansion would apply it to times of zones that the file defines as well.
    name = str(calendar.pop("X-WR-TIMEZONE", "UTC"))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidFeed(f"X-WR-TIMEZONE: unknown time zone {name[:80]!r}") from None


def _check_times(event: Event, lines: EventLines) -> None:
    """Raise InvalidFeed unless the times of *event* can be read and are in order."""
    for name, reason in event.errors:
        if name in _TIMES:
            raise InvalidFeed(f"{name}: {reason}", lines.line_of(str(name)))
    start, end = _value(event, lines, "DTSTART"), _value(event, lines, "DTEND")
    duration = event.get("DURATION")
    if start is None:
        raise InvalidFeed("the event has no DTSTART", lines.number)
    if duration is not None and duration.dt < timedelta(0):
        raise InvalidFeed("DURATION: expected a duration of at least 0", lines.line_of("DURATION"))
    if end is None:
        return
    kinds = [(isinstance(at, datetime), bool(getattr(at, "tzinfo", None))) for at in (start, end)]
    if kinds[0] != kinds[1]:
        raise InvalidFeed(
            "DTEND: expected a date or a time with or without zone, as in DTSTART", lines.line_of("DTEND")
        )
    if end < start:
        raise InvalidFeed(
            f"the end {end.isoformat()} is before the start {start.isoformat()}", lines.line_of("DTEND")
        )


def _value(event: Event, lines: EventLines, name: str) -> date | None:
    value = event.get(name)
    if value is None:
        return None
    if isinstance(value, list) or not isinstance(getattr(value, "dt", None), date):
        raise InvalidFeed(f"{name}: expected one date or time", lines.line_of(name))
    at: date = value.dt
    if value.params.get("TZID") and getattr(at, "tzinfo", None) is None:
        raise InvalidFeed(f"{name}: unknown time zone {value.params['TZID']!r}", lines.line_of(name))
    if not 1900 <= at.year <= 2200:
        raise InvalidFeed(f"{name}: expected a year from 1900 to 2200, got {at.year}", lines.line_of(name))
    return at


def _bound_rules(events: list[Event], all_lines: Sequence[EventLines], horizon: FeedHorizon) -> None:
    """Replace the rules of *events* by rules that end with *horizon*."""
    started, steps, occurrences = time.monotonic(), 0, 0
    for event, lines in zip(events, all_lines, strict=True):
        rules = [line for line in lines.lines if line.name in {"RRULE", "EXRULE"}]
        if not rules:
            continue
        if len(rules) > 1 or rules[0].name == "EXRULE":
            raise InvalidFeed("expected one RRULE and no EXRULE", rules[-1].number)
        bounded = bound(rules[0], _date(event, "DTSTART"), horizon)
        steps, occurrences = steps + bounded.steps, occurrences + bounded.occurrences
        if occurrences > MAX_WINDOWS:
            raise InvalidFeed(f"the feed has more than {MAX_WINDOWS:,} windows", rules[0].number)
        if steps > MAX_STEPS or time.monotonic() - started > MAX_SECONDS:
            raise InvalidFeed("the recurring events are too many, or began too long ago", rules[0].number)
        event["RRULE"] = vRecur.from_ical(bounded.text)


def _windows(
    calendar: Calendar,
    all_lines: Sequence[EventLines],
    horizon: FeedHorizon,
    zone: tzinfo,
    left_out: Counter[str],
) -> Iterator[AnnouncedWindow]:
    numbers = {lines.value("UID"): lines.number for lines in reversed(all_lines)}
    recurring = {
        lines.value("UID")
        for lines in all_lines
        if any(line.name in {"RRULE", "RDATE", "RECURRENCE-ID"} for line in lines.lines)
    }
    try:
        occurrences = recurring_ical_events.of(calendar).between(horizon.starts_at, horizon.ends_at)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidFeed(f"the recurrences cannot be expanded: {str(error)[:200]}") from error
    seen: set[str] = set()
    for event in occurrences:
        uid = str(event["UID"]).strip()
        starts_at, ends_at = (_utc(_date(event, name), zone) for name in ("DTSTART", "DTEND"))
        if str(event.get("STATUS", "")).upper() == "CANCELLED":
            left_out["cancelled"] += 1
        elif starts_at == ends_at:
            left_out["without a duration"] += 1
        else:
            key = uid
            if uid in recurring:
                key = f"{uid}/{_utc(_date(event, 'RECURRENCE-ID'), zone):%Y%m%dT%H%M%SZ}"
                if key in seen:  # a change of all later occurrences gives them its own RECURRENCE-ID
                    key = f"{uid}/{starts_at:%Y%m%dT%H%M%SZ}"
                seen.add(key)
            yield check_window(
                AnnouncedWindow(
                    uid=key,
                    title=str(event.get("SUMMARY", "")),
                    starts_at=starts_at,
                    ends_at=ends_at,
                    line=numbers.get(uid, 0),
                    sites=frozenset(_names(event)),
                    url=str(event.get("URL", "")),
                )
            )


def _date(event: Event, name: str) -> date:
    at: date = event[name].dt  # type: ignore[union-attr, assignment]  # checked before
    return at


def _utc(at: date, zone: tzinfo) -> datetime:
    if not isinstance(at, datetime):
        at = datetime(at.year, at.month, at.day, tzinfo=zone)
    return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)


def _names(event: Event) -> Iterator[str]:
    """Yield the categories and the parts of the location of *event*."""
    texts = [str(event.get("LOCATION", "")).replace(";", ",")]
    values = event.get("CATEGORIES", [])
    for value in values if isinstance(values, list) else [values]:
        texts.extend(str(category) for category in getattr(value, "cats", ()))
    for text in texts:
        yield from (name.strip() for name in text.split(",") if name.strip())
