"""GOCDB and OSG Topology feeds: what is downtime, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.runs.maintenance.feeds import gocdb, load, names, osg_topology
from monitor.runs.maintenance.feeds.base import InvalidFeed, UnknownFeed
from tests.monitor.runs.maintenance.feeds import builders
from tests.monitor.runs.maintenance.feeds.builders import HORIZON

BILLION_LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE results [
 <!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
]><results>&c;</results>"""
EXTERNAL = b'<!DOCTYPE results [<!ENTITY x SYSTEM "file:///etc/passwd">]><results>&x;</results>'


def test_the_folder_is_the_registry() -> None:
    assert names() == ["gocdb", "ical", "osg_topology"]
    assert load("gocdb").summary == gocdb.Feed.summary
    with pytest.raises(UnknownFeed, match="there is no feed format 'os'"):
        load("os")


def test_an_outage_in_gocdb_becomes_a_window() -> None:
    (window,) = gocdb.Feed().parse(builders.gocdb(), HORIZON).windows
    assert (window.uid, window.title, window.line) == ("1G0", "New disks", 3)
    assert window.starts_at == datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert window.ends_at == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert (window.sites, window.hosts) == (frozenset({"SDSC"}), frozenset({"login.sdsc.example.org"}))
    assert window.url == "https://goc.example.org/downtime?id=1&x=2"


def test_a_downtime_of_several_services_is_one_window() -> None:
    first = builders.gocdb()
    second = builders.gocdb(HOSTNAME="data.sdsc.example.org")
    both = first.replace(b"</results>", second[second.index(b"<DOWNTIME") :])
    (window,) = gocdb.Feed().parse(both, HORIZON).windows
    assert window.hosts == {"login.sdsc.example.org", "data.sdsc.example.org"}


def test_a_resource_in_osg_topology_becomes_a_window() -> None:
    (window,) = osg_topology.Feed().parse(builders.osg(), HORIZON).windows
    assert (window.uid, window.title) == ("77", "New disks")
    assert window.starts_at == datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert window.ends_at == datetime(2026, 3, 1, 16, tzinfo=UTC)
    assert (window.sites, window.hosts) == (
        frozenset({"SDSC", "SDSC-CE"}),
        frozenset({"login.sdsc.example.org"}),
    )


def test_an_announced_risk_and_an_old_downtime_are_counted_and_left_out() -> None:
    warning = gocdb.Feed().parse(builders.gocdb(SEVERITY="WARNING"), HORIZON)
    risk = osg_topology.Feed().parse(builders.osg(Severity="No Significant Outage Expected"), HORIZON)
    old = gocdb.Feed().parse(builders.gocdb(START_DATE="1", END_DATE="2"), HORIZON)
    assert [content.windows for content in (warning, risk, old)] == [(), (), ()]
    assert [dict(content.left_out) for content in (warning, risk, old)] == [
        {"severity WARNING": 1},
        {"severity No Significant Outage Expected": 1},
        {"outside the imported period": 1},
    ]


def test_a_link_that_is_no_web_address_is_dropped() -> None:
    (window,) = gocdb.Feed().parse(builders.gocdb(GOCDB_PORTAL_URL="javascript:alert(1)"), HORIZON).windows
    assert window.url == ""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b" \n", "the file is empty", id="empty"),
        pytest.param(b"\x00\x01\x02", "line 1: malformed XML", id="binary"),
        pytest.param(BILLION_LAUGHS, "line 2: a document type or an entity is refused", id="billion laughs"),
        pytest.param(EXTERNAL, "line 1: a document type or an entity is refused", id="external entity"),
        pytest.param(b"<results>\n<DOWNTIME>", "line 2: malformed XML", id="truncated"),
        pytest.param(b"<html/>", "line 1: expected the element results, got 'html'", id="another document"),
        pytest.param(b"<a>" * 30, "line 1: elements are nested deeper than 20", id="nested"),
        pytest.param(b'<?xml version="1.0" encoding="x"?><a/>', "malformed XML", id="unknown encoding"),
        pytest.param(b" " * (16 * 1024 * 1024) + b"<a/>", "the file is larger than", id="huge"),
        pytest.param(
            builders.gocdb(START_DATE="soon"),
            "line 3: START_DATE: expected seconds since 1970, got 'soon'",
            id="malformed date",
        ),
        pytest.param(builders.gocdb(END_DATE="1"), "line 3: the end", id="end before start"),
        pytest.param(
            builders.gocdb(SEVERITY="MAYBE"), "line 3: SEVERITY: expected OUTAGE or WARNING", id="severity"
        ),
        pytest.param(
            builders.gocdb().replace(b"1G0", b""), "line 3: the entry has no identifier", id="no identifier"
        ),
        pytest.param(
            builders.gocdb().replace(
                b"</results>",
                (other := builders.gocdb(END_DATE="1772359201"))[other.index(b"<DOWNTIME") :],
            ),
            "line 10: '1G0' is in line 3 already, with other times",
            id="the same identifier at other times",
        ),
    ],
)
def test_a_hostile_file_of_gocdb_is_refused_with_line_and_reason(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidFeed) as refused:
        gocdb.Feed().parse(data, HORIZON)
    assert str(refused.value).startswith(reason)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<results/>", "line 1: expected the element Downtimes, got 'results'"),
        (builders.osg(StartTime="2026-03-01 08:00"), "line 3: StartTime: expected a time such as"),
        (builders.osg(StartTime="Foo 01, 2026 08:00 UTC"), "line 3: StartTime: expected a time such as"),
        (builders.osg(EndTime="Feb 30, 2026 08:00 UTC"), "line 3: EndTime: expected a time such as"),
        (builders.osg(EndTime="Feb 01, 2026 08:00 UTC"), "line 3: the end"),
        (builders.osg(Severity="Terrible"), "line 3: Severity: unknown value 'Terrible'"),
    ],
)
def test_a_malformed_file_of_osg_topology_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidFeed) as refused:
        osg_topology.Feed().parse(data, HORIZON)
    assert str(refused.value).startswith(reason)
