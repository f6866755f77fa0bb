"""Arrival times of packets behind uplinks, links and queues."""

from __future__ import annotations

import itertools

import pytest

from monitor.testbed.wan.links import LinkTable, parse_lines
from monitor.testbed.wan.queueing import Network

MBIT = 125_000
PACKET_BYTES = 1250  # 1 ms at 10 Mbit/s


def network(text: str, *chances: float) -> Network:
    """Return a network of anl, iu and tacc whose random numbers are *chances*, repeated."""
    sequence = itertools.cycle(chances or (0.5,))
    return Network(LinkTable.of(("anl", "iu", "tacc"), parse_lines(text)), lambda: next(sequence))


def test_a_packet_takes_the_delay_of_its_direction() -> None:
    wan = network("link anl iu delay_ms=20\nlink iu anl delay_ms=5")
    assert wan.arrival("anl", "iu", PACKET_BYTES, 100.0) == pytest.approx(100.020)
    assert wan.arrival("iu", "anl", PACKET_BYTES, 100.0) == pytest.approx(100.005)


def test_packets_leave_one_after_the_other_at_the_rate_of_the_link() -> None:
    wan = network("link anl iu delay_ms=20 rate_mbit=10")
    arrivals = [wan.arrival("anl", "iu", PACKET_BYTES, 0.0) for _ in range(3)]
    assert arrivals == pytest.approx([0.021, 0.022, 0.023])


def test_an_idle_link_accumulates_no_credit() -> None:
    wan = network("link anl iu rate_mbit=10")
    wan.arrival("anl", "iu", PACKET_BYTES, 0.0)
    assert wan.arrival("anl", "iu", PACKET_BYTES, 5.0) == pytest.approx(5.001)


def test_all_packets_of_a_site_share_its_uplink_and_others_do_not() -> None:
    wan = network("site anl uplink_mbit=10")
    arrivals = [wan.arrival("anl", target, PACKET_BYTES, 0.0) for target in ("iu", "tacc", "iu")]
    assert arrivals == pytest.approx([0.001, 0.002, 0.003])
    assert wan.arrival("iu", "tacc", PACKET_BYTES, 0.0) == 0.0


def test_the_slower_of_uplink_and_link_sets_the_pace() -> None:
    wan = network("site anl uplink_mbit=100\nlink anl iu rate_mbit=10")
    arrivals = [wan.arrival("anl", "iu", PACKET_BYTES, 0.0) or 0.0 for _ in range(101)]
    assert (arrivals[-1] - arrivals[0]) / 100 == pytest.approx(0.001)


def test_packets_that_do_not_fit_into_the_queue_are_dropped_and_counted() -> None:
    wan = network("queue bytes=5000\nlink anl iu rate_mbit=10")
    arrivals = [wan.arrival("anl", "iu", PACKET_BYTES, 0.0) for _ in range(10)]
    assert sum(at is not None for at in arrivals) == 5  # four wait, one is being sent
    assert wan.counters["anl", "iu"].dropped == 5
    assert wan.arrival("anl", "iu", PACKET_BYTES, 0.01) is not None  # the queue has drained


def test_packets_that_wait_for_the_uplink_do_not_fill_the_queue_of_the_link() -> None:
    wan = network("queue bytes=12500\nsite anl uplink_mbit=10\nlink anl iu rate_mbit=100")
    arrivals = [wan.arrival("anl", "iu", PACKET_BYTES, 0.0) for _ in range(10)]
    assert None not in arrivals


def test_packets_are_lost_at_the_rate_of_the_link() -> None:
    wan = network("link anl iu loss_percent=10", *(number / 100 for number in range(100)))
    arrivals = [wan.arrival("anl", "iu", PACKET_BYTES, 0.0) for _ in range(1000)]
    counters = wan.counters["anl", "iu"]
    assert arrivals.count(None) == counters.lost == 100
    assert (counters.packets, counters.bytes) == (1000, 1000 * PACKET_BYTES)


def test_a_link_that_loses_all_cuts_one_way_only() -> None:
    wan = network("link anl iu loss_percent=100", 0.999)
    assert wan.arrival("anl", "iu", PACKET_BYTES, 0.0) is None
    assert wan.arrival("iu", "anl", PACKET_BYTES, 0.0) == 0.0


def test_jitter_varies_the_delay_and_never_reorders_packets() -> None:
    wan = network("link anl iu delay_ms=10 jitter_ms=4", 0.0, 1.0, 0.5)
    arrivals = [wan.arrival("anl", "iu", PACKET_BYTES, at) for at in (0.0, 0.020, 0.021)]
    assert arrivals == pytest.approx([0.006, 0.034, 0.034])


def test_jitter_delivers_no_packet_before_it_was_sent() -> None:
    wan = network("link anl iu delay_ms=1 jitter_ms=5", 0.0)
    assert wan.arrival("anl", "iu", PACKET_BYTES, 2.0) == 2.0


def test_after_a_change_packets_do_not_wait_behind_older_slow_ones() -> None:
    wan = network("link anl iu delay_ms=500 rate_mbit=0.01")
    slow = wan.arrival("anl", "iu", PACKET_BYTES, 0.0)
    wan.change(LinkTable.of(("anl", "iu", "tacc"), parse_lines("link anl iu delay_ms=10")))
    assert slow == pytest.approx(1.5)
    assert wan.arrival("anl", "iu", PACKET_BYTES, 0.1) == pytest.approx(0.110)
    assert wan.counters["anl", "iu"].packets == 2


def test_a_second_of_full_load_carries_bytes_at_the_rate() -> None:
    wan = network("queue bytes=20000\nlink anl iu rate_mbit=50")
    size_bytes = 9000
    offered = [number * 0.0001 for number in range(10_000)]  # 720 Mbit/s
    arrived = [at for now in offered if (at := wan.arrival("anl", "iu", size_bytes, now)) and at <= 1.0]
    assert len(arrived) * size_bytes == pytest.approx(50 * MBIT, rel=0.01)
