"""Housekeeping creates partitions ahead, analyses tables, and runs in one process at a time."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone

from monitor.core.db import analyze
from monitor.core.db.advisory_locks import AdvisoryLock
from monitor.depot.engines import engine
from monitor.housekeeping import housekeep

pytestmark = pytest.mark.django_db(transaction=True)


def test_partitions_of_the_next_months_are_created(noon: datetime) -> None:
    later = noon.replace(year=2031)
    housekeep(later)
    months = {(part.start.year, part.start.month) for part in engine().partitions("monitor_run")}
    assert {(2031, 3), (2031, 4), (2031, 5)} <= months


def test_partitioned_tables_are_analysed_once_a_day() -> None:
    now = timezone.now()
    housekeep(now)
    assert analyze.outdated(now - timedelta(hours=1)) == []
    assert "monitor_run" in analyze.outdated(now + timedelta(days=1))


def test_a_step_that_fails_keeps_no_other_step_back() -> None:
    now = timezone.now()
    Session.objects.create(session_key="old", expire_date=now - timedelta(days=1))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE monitor_providerlogout RENAME TO away")
        try:
            with pytest.raises(ExceptionGroup) as failed:
                housekeep(now)
        finally:
            cursor.execute("ALTER TABLE away RENAME TO monitor_providerlogout")
    [error] = failed.value.exceptions
    assert "monitor_providerlogout" in str(error)
    assert not Session.objects.exists()


def test_only_one_process_does_the_housekeeping() -> None:
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.HOUSEKEEPING])
    assert housekeep(timezone.now()) is None
    other.close()
