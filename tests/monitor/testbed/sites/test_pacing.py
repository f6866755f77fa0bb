"""The pace of a link, on a simulated clock."""

from __future__ import annotations

import pytest

from monitor.testbed.sites.pacing import Pace, bytes_per_second


@pytest.mark.parametrize(
    ("opened_at", "rate", "accepted", "now", "delay"),
    [
        pytest.param(10.0, 100.0, 0, 10.0, 0.0, id="the first byte comes at once"),
        pytest.param(10.0, 100.0, 50, 10.0, 0.5, id="half a second's bytes come after half a second"),
        pytest.param(10.0, 100.0, 50, 10.4, 0.1, id="the time of the login is not waited for again"),
        pytest.param(10.0, 100.0, 50, 10.5, 0.0, id="a byte on time is not delayed"),
        pytest.param(10.0, 100.0, 50, 99.0, 0.0, id="a link that has fallen behind does not wait"),
        pytest.param(10.0, 100.0, 200, 11.9, 0.1, id="a delayed link catches up"),
        pytest.param(10.0, None, 10**12, 10.0, 0.0, id="a link without limit never waits"),
    ],
)
def test_a_byte_is_due_by_the_clock_of_the_whole_link(
    opened_at: float, rate: float | None, accepted: int, now: float, delay: float
) -> None:
    assert Pace(opened_at, rate).delay_seconds(accepted, now) == pytest.approx(delay)


def test_a_file_sent_in_chunks_takes_the_drawn_time() -> None:
    pace, now = Pace(0.0, bytes_per_second(1_000_000, 8.0)), 0.0
    for accepted in range(32_768, 1_000_001, 32_768):
        now += 0.003 + pace.delay_seconds(accepted, now + 0.003)
    assert now + pace.delay_seconds(1_000_000, now) == pytest.approx(8.0)


@pytest.mark.parametrize(("seconds", "rate"), [(2.0, 500.0), (0.0, None), (-1.0, None)])
def test_a_rate_moves_the_reference_in_the_drawn_time_or_has_no_limit(
    seconds: float, rate: float | None
) -> None:
    assert bytes_per_second(1000, seconds) == rate
