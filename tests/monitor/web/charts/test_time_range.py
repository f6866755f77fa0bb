"""Time ranges of pages: read from a query string, written into one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from monitor.web.charts.time_range import InvalidRange, PageRange, parse_range

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
BERLIN = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, PageRange("7d", NOW - timedelta(days=7), NOW)),
        ({"range": "24h"}, PageRange("24h", NOW - timedelta(days=1), NOW)),
        ({"range": "all"}, PageRange("all", None, NOW)),
        (
            {"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00+01:00"},
            PageRange("", datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, 23, tzinfo=UTC)),
        ),
        (
            {"from": "2026-03-01T10:00", "range": "7d"},
            PageRange("", datetime(2026, 3, 1, 9, tzinfo=UTC), NOW),
        ),
        ({"to": "2026-03-01"}, PageRange("", None, datetime(2026, 2, 28, 23, tzinfo=UTC))),
    ],
)
def test_a_query_string_means_a_range(query: dict[str, str], expected: PageRange) -> None:
    parsed = parse_range(query, NOW, BERLIN)
    assert parsed == expected
    assert parse_range(parsed.query, NOW) == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"range": "yesteryear"}, "range: expected one of 1h, 24h, 7d, 30d, 90d, 1y, all, got 'yesteryear'"),
        ({"from": "yesterday"}, "from: expected a time such as 2026-03-01T12:00"),
        ({"to": "2026-02-30"}, "to: expected a time"),
        ({"from": "0001-01-01"}, "from: expected a time"),
        ({"from": "2026-03-05"}, "from: expected a time before 2026-03-04 12:00 UTC"),
        ({"from": "2026-03-02", "to": "2026-03-01"}, "from: expected a time before"),
    ],
)
def test_a_range_that_cannot_be_read_is_refused(query: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRange, match=message):
        parse_range(query, NOW, BERLIN)


def test_a_range_has_a_label_for_people_and_for_files() -> None:
    absolute = parse_range({"from": "2026-03-01", "to": "2026-03-02"}, NOW)
    assert absolute.label == "2026-03-01 00:00 to 2026-03-02 00:00 UTC"
    assert absolute.file_label == "20260301T0000-20260302T0000"
    assert absolute.query_string == "from=2026-03-01T00%3A00%3A00Z&to=2026-03-02T00%3A00%3A00Z"
    assert (parse_range({}, NOW).label, parse_range({}, NOW).file_label) == ("7 days", "7d")
