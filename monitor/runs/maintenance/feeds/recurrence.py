"""Check recurrence rules (RFC 5545, section 3.3.10) and bound them, before a library expands them.

An endless rule is normal: it is expanded to the end of the imported period. A rule is refused if it recurs
more often than a few times a day, cannot be expanded in a short time, or has too many occurrences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from math import prod

from dateutil.rrule import rrulestr

from monitor.runs.maintenance.feeds.base import FeedHorizon, InvalidFeed
from monitor.runs.maintenance.feeds.content_lines import ContentLine

MAX_OCCURRENCES = 1000  # of one event in the imported period
MAX_STEPS = 500_000  # of the rules of a feed; a step is a period of a rule, such as a day
MAX_TIMES = 4  # a day
FIRST_YEAR = 1970
_DAYS = {"DAILY": 1, "WEEKLY": 7, "MONTHLY": 28, "YEARLY": 365}  # the shortest of each kind
_KEYS = {
    *("FREQ", "UNTIL", "COUNT", "INTERVAL", "BYSECOND", "BYMINUTE", "BYHOUR", "BYDAY", "BYMONTHDAY"),
    *("BYYEARDAY", "BYWEEKNO", "BYMONTH", "BYSETPOS", "WKST"),
}
_TIMES = ("BYHOUR", "BYMINUTE", "BYSECOND")
_NOT_DAILY = {"BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS"}


@dataclass(frozen=True)
class BoundedRule:
    """A rule that ends: ``text`` has a count, or an end that is not after the imported period."""

    text: str
    steps: int
    occurrences: int  # in the imported period, at most


def check_zone_rule(line: ContentLine) -> None:
    """Raise InvalidFeed unless *line* is a rule of a time zone that recurs once a year."""
    parts = _parts(line)
    if parts["FREQ"] != "YEARLY" or any(key in parts for key in _TIMES):
        raise InvalidFeed(
            f"RRULE of a time zone: expected FREQ=YEARLY without times, got {_shown(line)}", line.number
        )


def bound(line: ContentLine, starts_at: date, horizon: FeedHorizon) -> BoundedRule:
    """Return the rule of *line* for an event that starts at *starts_at*, ended soon after *horizon*.

    Raises:
        InvalidFeed: the rule is malformed, has no occurrence, or has too many.
    """
    parts = _parts(line)
    start = _naive(starts_at)
    cap = _naive(horizon.ends_at.astimezone(UTC)) + timedelta(days=1)  # in any time zone
    until = min(_until(line, parts["UNTIL"]), cap) if "UNTIL" in parts else cap
    steps = _steps(line, parts, start, cap)
    rest = {key: value for key, value in parts.items() if key not in {"UNTIL", "COUNT"}}
    since = _naive(horizon.starts_at.astimezone(UTC))
    count, recent = _count(line, rest, start, until, since) if start <= until else (0, 0)
    if "COUNT" in parts and count >= int(parts["COUNT"]):
        return BoundedRule(_text({**rest, "COUNT": parts["COUNT"]}), steps, recent)
    if "UNTIL" in parts and until < cap:
        return BoundedRule(_text({**rest, "UNTIL": parts["UNTIL"]}), steps, recent)
    zone = "Z" if isinstance(starts_at, datetime) and starts_at.tzinfo else ""
    end = f"{cap:%Y%m%dT%H%M%S}{zone}" if isinstance(starts_at, datetime) else f"{cap:%Y%m%d}"
    return BoundedRule(_text({**rest, "UNTIL": end}), steps, recent)


def _steps(line: ContentLine, parts: Mapping[str, str], start: datetime, cap: datetime) -> int:
    frequency, interval = parts["FREQ"], int(parts.get("INTERVAL", "1"))
    times = prod(len(parts[key].split(",")) for key in _TIMES if key in parts)
    if frequency not in _DAYS or times > MAX_TIMES:
        raise InvalidFeed(f"RRULE: more often than {MAX_TIMES} times a day: {_shown(line)}", line.number)
    if frequency == "DAILY" and (
        parts.keys() & _NOT_DAILY or (interval > 1 and parts.keys() & {"BYDAY", "BYMONTH"})
    ):
        raise InvalidFeed(f"RRULE: expected a simple daily rule, got {_shown(line)}", line.number)
    if start.year < FIRST_YEAR:
        raise InvalidFeed(f"a recurring event starts before {FIRST_YEAR}", line.number)
    return max((cap - start).days, 0) // (_DAYS[frequency] * interval) + 1


def _parts(line: ContentLine) -> dict[str, str]:
    pairs = [part.partition("=") for part in line.value.strip().upper().split(";") if part]
    parts = {key: value for key, _, value in pairs}
    if len(parts) != len(pairs) or not parts.keys() <= _KEYS or "FREQ" not in parts:
        raise InvalidFeed(
            f"RRULE: expected parts such as FREQ=WEEKLY;BYDAY=TU, got {_shown(line)}", line.number
        )
    for key in ("INTERVAL", "COUNT"):
        value = parts.get(key, "1")
        if not (value.isascii() and value.isdigit() and len(value) <= 6 and int(value)):
            raise InvalidFeed(
                f"RRULE: {key}: expected a number from 1 to 999999, got {value[:40]!r}", line.number
            )
    if "COUNT" in parts and "UNTIL" in parts:
        raise InvalidFeed("RRULE: expected COUNT or UNTIL, got both", line.number)
    return parts


def _until(line: ContentLine, text: str) -> datetime:
    for layout in ("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S", "%Y%m%d"):
        try:
            return datetime.strptime(text, layout)  # noqa: DTZ007 - compared with local times
        except ValueError:
            continue
    raise InvalidFeed(f"RRULE: UNTIL: expected a date or a time, got {text[:40]!r}", line.number)


def _count(
    line: ContentLine, rest: Mapping[str, str], start: datetime, until: datetime, since: datetime
) -> tuple[int, int]:
    """Return the numbers of occurrences from *start*, and from *since*, to *until*."""
    count = recent = 0
    try:
        for at in rrulestr(_text({**rest, "UNTIL": f"{until:%Y%m%dT%H%M%S}"}), dtstart=start):
            count += 1
            recent += at >= since
            if recent > MAX_OCCURRENCES:
                break
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise InvalidFeed(f"RRULE: {_shown(line)}: {error}", line.number) from error
    if recent > MAX_OCCURRENCES:
        raise InvalidFeed(f"RRULE: more than {MAX_OCCURRENCES:,} occurrences: {_shown(line)}", line.number)
    if not count:
        raise InvalidFeed(f"RRULE: the rule never matches: {_shown(line)}", line.number)
    return count, recent


def _naive(at: date) -> datetime:
    return at.replace(tzinfo=None) if isinstance(at, datetime) else datetime.combine(at, time())


def _text(parts: Mapping[str, str]) -> str:
    return ";".join(f"{key}={value}" for key, value in parts.items())


def _shown(line: ContentLine) -> str:
    return repr(line.value.strip()[:80])
