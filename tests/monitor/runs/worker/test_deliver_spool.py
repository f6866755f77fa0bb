"""Delivery of the spool: complete, by one process at a time; reports stay while the depot is unavailable."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from monitor.models import RawReport, Run, Sample, Series, Transition
from monitor.models.run import State
from monitor.runs.worker.deliver_spool import deliver, spool_of, spool_report
from reporters import report as wire
from tests.monitor.builders import asked_for, circle_report
from tests.waiting import eventually

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def own_spool(settings: Settings, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path / "var"


def spooled(reports: Sequence[wire.Report]) -> None:
    for report in reports:
        spool_report(report)


def of_circle(count: int, noon: datetime) -> list[wire.Report]:
    return [circle_report(noon + number * MINUTE) for number in range(count)]


def stored() -> set[datetime]:
    return set(RawReport.objects.values_list("run__slot", flat=True))


def set_aside() -> list[str]:
    """Return the runs whose reports were refused."""
    refused = (spool_of("home").directory / "refused").glob("*[!n]")
    return sorted(re.findall(r'"run":"([0-9a-f-]+)"', path.read_text())[0] for path in refused)


def test_refused_reports_do_not_stop_the_others_of_their_batch(circle: Series, noon: datetime) -> None:
    first, endless, unknown, last = of_circle(4, noon)
    stranger = circle_report(unknown.slot, series="nobody-knows")
    spooled([first, stranger, last])
    too_long = wire.to_json(replace(endless, metrics=[wire.MetricValue("m", 1.0, "u" * 60)]))
    spool_of("home").append(too_long)
    asked_for(circle, endless.slot, state=State.RUNNING)
    assert deliver() == 4
    assert stored() == {first.slot, last.slot}
    assert set_aside() == sorted(str(report.run) for report in (endless, stranger))
    reason = Run.objects.get(slot=endless.slot).reason
    assert reason.startswith("its report was refused: metrics[0].unit: expected at most 50 characters")
    assert spool_of("home").is_empty()


def test_a_report_that_the_depot_already_has_leaves_the_spool(circle: Series, noon: datetime) -> None:
    reports = of_circle(3, noon)
    spooled(reports[:2])
    assert deliver() == 2
    spooled(reports)  # a process was killed after delivering and before removing them
    assert deliver() == 3
    assert stored() == {report.slot for report in reports}
    assert spool_of("home").is_empty()


def test_concurrent_deliveries_neither_duplicate_nor_leave_a_report(circle: Series, noon: datetime) -> None:
    reports = of_circle(24, noon)
    start = threading.Barrier(4)

    def work(mine: Sequence[wire.Report]) -> int:
        try:
            start.wait()
            return sum(_put_and_deliver(report) for report in mine)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        delivered = sum(pool.map(work, [reports[number::4] for number in range(4)]))
    assert delivered == len(reports)
    assert stored() == {report.slot for report in reports}
    assert spool_of("home").is_empty()
    assert Sample.objects.count() == 8 * len(reports)
    assert Transition.objects.filter(target=State.PASSED).count() == len(reports)


def _put_and_deliver(report: wire.Report) -> int:
    spooled([report])
    return deliver()


def test_every_report_stays_when_the_depot_becomes_unavailable_during_delivery(
    circle: Series, noon: datetime
) -> None:
    reports = of_circle(3, noon)
    spooled(reports)
    with ThreadPoolExecutor(1) as pool, writes_blocked("monitor_rawreport"):  # runs are written before
        delivering = pool.submit(_deliver_and_disconnect)
        assert eventually(_disconnect_waiting)
        assert delivering.result() == 0
    assert spool_of("home").pending_runs() == {report.run for report in reports}
    assert not Run.objects.exists()
    assert deliver() == 3
    assert stored() == {report.slot for report in reports}


@contextmanager
def writes_blocked(table: str) -> Iterator[None]:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
        yield
    finally:
        other.close()


def _deliver_and_disconnect() -> int:
    try:
        return deliver()
    finally:
        connection.close()


def _disconnect_waiting() -> int:
    """End the sessions of this test's database that wait for a lock; how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return len(cursor.fetchall())
