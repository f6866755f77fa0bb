"""A server that asks to be left alone is understood, and cannot ask for ever."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.core.retry_after import MOST_RETRY_SECONDS, retry_after_seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3600", 3600.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("99999999999999999999", MOST_RETRY_SECONDS),
        ("Sun, 01 Mar 2026 12:30:00 GMT", 1800.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Fri, 01 Mar 2126 12:00:00 GMT", MOST_RETRY_SECONDS),
        ("Sun, 99 Foo 0000 99:99:99 GMT", None),
        ("soon", None),
        ("-5", None),
        ("1e3", None),
        ("\u0663", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_bounded(header: str, seconds: float | None) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert retry_after_seconds(header, noon.timestamp()) == seconds
