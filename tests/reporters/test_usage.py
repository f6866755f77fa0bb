"""Usage of resources is counted at each resource."""

from __future__ import annotations

import pytest

from probes.base import in_parallel
from reporters.usage import ResourceUsage, UsageMeter, added


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_copy_counts_at_both_ends() -> None:
    meter = UsageMeter()
    meter.copied("iu", "sdsc", 100)
    meter.copied("sdsc", "iu", 7)
    assert meter.read() == {"iu": ResourceUsage(100, 7), "sdsc": ResourceUsage(7, 100)}


def test_concurrent_copies_are_all_counted() -> None:
    meter = UsageMeter()

    def copy_often(_: int) -> None:
        for _ in range(500):
            meter.copied("iu", "sdsc", 1)

    in_parallel(copy_often, range(8))
    assert meter.read() == {"iu": ResourceUsage(bytes_sent=4000), "sdsc": ResourceUsage(bytes_received=4000)}


def test_a_job_counts_its_reported_seconds_for_each_processor(clock: Clock) -> None:
    meter = UsageMeter(clock)
    job = meter.job("iu", 4)
    job.began()
    clock.now += 99
    job.ended(2.5)
    assert meter.read() == {"iu": ResourceUsage(cpu_seconds=10.0)}


def test_a_failed_job_counts_from_when_it_was_seen_to_run(clock: Clock) -> None:
    meter = UsageMeter(clock)
    job = meter.job("iu", 2)
    job.began()
    clock.now += 3
    job.ended()
    clock.now += 50
    assert meter.read() == {"iu": ResourceUsage(cpu_seconds=6.0)}


def test_a_job_without_a_wait_for_its_end_counts_until_now(clock: Clock) -> None:
    meter = UsageMeter(clock)
    meter.job("iu", 2).began()
    clock.now += 3
    assert meter.read() == {"iu": ResourceUsage(cpu_seconds=6.0)}


def test_a_job_that_never_started_used_nothing(clock: Clock) -> None:
    meter = UsageMeter(clock)
    meter.job("iu", 2).ended()
    meter.job("iu", 2)
    clock.now += 3
    assert meter.read() == {}


def test_usage_is_added_by_resource() -> None:
    both = added(
        {"iu": ResourceUsage(1, 2, 3.0), "anl": ResourceUsage(1)}, {"iu": ResourceUsage(10, 20, 30.0)}
    )
    assert both == {"iu": ResourceUsage(11, 22, 33.0), "anl": ResourceUsage(1)}
