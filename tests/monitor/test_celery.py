"""Celery workers keep their database connection between tasks while it works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from celery.fixups.django import DjangoWorkerFixup  # type: ignore[attr-defined]  # not in its stubs
from celery.signals import task_prerun
from django.db import connection

from monitor.celery import app
from monitor.tasks import heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker() -> Iterator[DjangoWorkerFixup]:
    """Provide the handlers that a Celery worker runs before and after each task."""
    connection.close()
    yield DjangoWorkerFixup(app)
    connection.close()


def session(worker: DjangoWorkerFixup) -> int:
    """Return the PostgreSQL session that a task gets."""
    worker.on_task_prerun(sender=heartbeat)
    task_prerun.send(sender=heartbeat)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = int(cursor.fetchone()[0])
    worker.on_task_postrun(sender=heartbeat)
    return pid


def end(session: int) -> None:
    """Terminate *session* on the server, as a restart does."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [session])
            assert cursor.fetchone()[0]
    finally:
        other.close()


def test_several_tasks_share_one_session(worker: DjangoWorkerFixup) -> None:
    assert len({session(worker) for _ in range(10)}) == 1


def test_a_session_that_the_server_closed_is_replaced_before_the_next_task(
    worker: DjangoWorkerFixup,
) -> None:
    before = session(worker)
    end(before)
    after = session(worker)
    assert after != before
    assert session(worker) == after


def test_a_session_is_replaced_after_a_number_of_tasks(worker: DjangoWorkerFixup) -> None:
    assert worker.db_reuse_max == 1000
    worker.db_reuse_max = 2
    assert len({session(worker) for _ in range(10)}) > 1
