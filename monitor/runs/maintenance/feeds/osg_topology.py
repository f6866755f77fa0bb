"""OSG Topology: ``rgdowntime/xml``, the downtimes of resources by past, current and future.

Of its severities, *Outage* and *Severe* (most services down) are downtime; the others announce a risk.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

from monitor.runs.maintenance.feeds.base import (
    AnnouncedWindow,
    FeedContent,
    FeedHorizon,
    InvalidFeed,
    check_window,
    content_of,
)
from monitor.runs.maintenance.feeds.xml_elements import XmlElement, parse_xml

_LISTS = ("PastDowntimes", "CurrentDowntimes", "FutureDowntimes")
_DOWN = {"outage", "severe"}
_RISK = {"intermittent outage", "no significant outage expected"}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# The hour counts to 23, and AM or PM repeats which half of the day it is.
_TIME = re.compile(r"([A-Z][a-z]{2}) ([0-9]{1,2}), ([0-9]{4}) ([0-9]{1,2}):([0-9]{2})(?: [AP]M)? UTC")


class Feed:
    summary = "OSG Topology, rgdowntime/xml"

    def parse(self, data: bytes, horizon: FeedHorizon) -> FeedContent:
        root = parse_xml(data)
        if root.tag != "Downtimes":
            raise InvalidFeed(f"expected the element Downtimes, got {root.tag!r}", root.line)
        outages, left_out = [], Counter[str]()
        for entry in (entry for name in _LISTS for part in root.all(name) for entry in part.all("Downtime")):
            severity = entry.value("Severity")
            if severity.lower() in _RISK:
                left_out[f"severity {severity}"] += 1
            elif severity.lower() in _DOWN:
                outages.append(_window(entry))
            else:
                raise InvalidFeed(f"Severity: unknown value {severity[:40]!r}", entry.line)
        return content_of(outages, horizon, left_out)


def _window(entry: XmlElement) -> AnnouncedWindow:
    names = {entry.value("ResourceGroup", "GroupName"), entry.value("ResourceName")}
    return check_window(
        AnnouncedWindow(
            uid=entry.value("ID"),
            title=entry.value("Description"),
            starts_at=_time(entry, "StartTime"),
            ends_at=_time(entry, "EndTime"),
            line=entry.line,
            sites=frozenset(names - {""}),
            hosts=frozenset({entry.value("ResourceFQDN").lower()} - {""}),
        )
    )


def _time(entry: XmlElement, tag: str) -> datetime:
    text = entry.value(tag)
    match = _TIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        month, *numbers = match.groups()
        day, year, hour, minute = map(int, numbers)
        return datetime(year, _MONTHS.index(month) + 1, day, hour, minute, tzinfo=UTC)
    except ValueError:
        raise InvalidFeed(
            f"{tag}: expected a time such as 'Mar 01, 2026 16:00 PM UTC', got {text[:40]!r}", entry.line
        ) from None
