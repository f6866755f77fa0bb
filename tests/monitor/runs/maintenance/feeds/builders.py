"""Small feeds for tests, and the period that the tests import."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from monitor.runs.maintenance.feeds.base import FeedHorizon

HORIZON = FeedHorizon(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC))


def calendar(*components: Sequence[str], head: Sequence[str] = ()) -> bytes:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//", *head]
    for component in components:
        lines.extend(component)
    return "\r\n".join([*lines, "END:VCALENDAR", ""]).encode()


def event(*lines: str, uid: str = "disks") -> Sequence[str]:
    return ["BEGIN:VEVENT", f"UID:{uid}", "SUMMARY:New disks", *lines, "END:VEVENT"]


def gocdb(**changed: str) -> bytes:
    """Return a feed with one downtime; *changed* replaces the texts of elements."""
    texts = {
        "HOSTNAME": "Login.SDSC.example.org",
        "HOSTED_BY": "SDSC",
        "SEVERITY": "OUTAGE",
        "DESCRIPTION": "New disks",
        "START_DATE": "1772352000",
        "END_DATE": "1772359200",
        "GOCDB_PORTAL_URL": "https://goc.example.org/downtime?id=1&amp;x=2",
        **changed,
    }
    elements = "\n".join(f"<{tag}>{text}</{tag}>" for tag, text in texts.items())
    downtime = f'<DOWNTIME ID="1" PRIMARY_KEY="1G0">\n{elements}</DOWNTIME>'
    return f'<?xml version="1.0"?>\n<results>\n{downtime}</results>'.encode()


def osg(**changed: str) -> bytes:
    """Return a feed with one downtime; *changed* replaces the texts of elements."""
    texts = {
        "ID": "77",
        "ResourceName": "SDSC-CE",
        "ResourceFQDN": "login.sdsc.example.org",
        "StartTime": "Mar 01, 2026 08:00 AM UTC",
        "EndTime": "Mar 01, 2026 16:00 PM UTC",
        "Severity": "Outage",
        "Description": "New disks",
        **changed,
    }
    elements = "\n".join(f"<{tag}>{text}</{tag}>" for tag, text in texts.items())
    return (
        "<Downtimes>\n<PastDowntimes/>\n<FutureDowntimes><Downtime>\n"
        f"<ResourceGroup><GroupName>SDSC</GroupName></ResourceGroup>{elements}"
        "</Downtime></FutureDowntimes></Downtimes>"
    ).encode()
