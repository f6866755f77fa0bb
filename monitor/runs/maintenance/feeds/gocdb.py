"""GOCDB: the answer of the method ``get_downtime`` of its programmatic interface.

GOCDB repeats a downtime for each service that it affects. Only the severity OUTAGE is downtime: a WARNING
announces a risk.
"""

from __future__ import annotations

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

_OUTAGE, _WARNING = "OUTAGE", "WARNING"


class Feed:
    summary = "GOCDB, method get_downtime (XML)"

    def parse(self, data: bytes, horizon: FeedHorizon) -> FeedContent:
        root = parse_xml(data)
        if root.tag != "results":
            raise InvalidFeed(f"expected the element results, got {root.tag!r}", root.line)
        outages, left_out = [], Counter[str]()
        for entry in root.all("DOWNTIME"):
            severity = entry.value("SEVERITY").upper()
            if severity == _WARNING:
                left_out["severity WARNING"] += 1
            elif severity == _OUTAGE:
                outages.append(_window(entry))
            else:
                raise InvalidFeed(f"SEVERITY: expected OUTAGE or WARNING, got {severity!r}", entry.line)
        return content_of(outages, horizon, left_out)


def _window(entry: XmlElement) -> AnnouncedWindow:
    return check_window(
        AnnouncedWindow(
            uid=entry.attributes.get("PRIMARY_KEY", "") or entry.value("PRIMARY_KEY"),
            title=entry.value("DESCRIPTION"),
            starts_at=_time(entry, "START_DATE"),
            ends_at=_time(entry, "END_DATE"),
            line=entry.line,
            sites=_nonempty(entry.value("HOSTED_BY") or entry.value("SITENAME")),
            hosts=_nonempty(entry.value("HOSTNAME").lower()),
            url=entry.value("GOCDB_PORTAL_URL"),
        )
    )


def _nonempty(text: str) -> frozenset[str]:
    return frozenset({text} - {""})


def _time(entry: XmlElement, tag: str) -> datetime:
    text = entry.value(tag)
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise InvalidFeed(f"{tag}: expected seconds since 1970, got {text[:40]!r}", entry.line)
    return datetime.fromtimestamp(int(text), UTC)
