"""Workers keep their connection to the depot from task to task, as long as it works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from celery.fixups.django import DjangoWorkerFixup  # type: ignore[attr-defined]  # not in its stubs
from celery.signals import task_prerun
from django.db import connection

from monitor.celery import app
from monitor.tasks import pulse

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker() -> Iterator[DjangoWorkerFixup]:
    """What Celery has a worker do around each task."""
    connection.close()
    yield DjangoWorkerFixup(app)
    connection.close()


def session(worker: DjangoWorkerFixup) -> int:
    """Which session of the depot a task gets."""
    worker.on_task_prerun(sender=pulse)
    task_prerun.send(sender=pulse)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        found = int(cursor.fetchone()[0])
    worker.on_task_postrun(sender=pulse)
    return found


def end(session: int) -> None:
    """Close *session* from the side of the server, as one does that is restarted."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [session])
            assert cursor.fetchone()[0]
    finally:
        other.close()


def test_one_session_serves_many_tasks(worker: DjangoWorkerFixup) -> None:
    assert len({session(worker) for _ in range(10)}) == 1


def test_a_session_that_the_server_has_closed_is_replaced_before_a_task_needs_it(
    worker: DjangoWorkerFixup,
) -> None:
    before = session(worker)
    end(before)
    after = session(worker)
    assert after != before
    assert session(worker) == after


def test_no_session_is_kept_for_ever(worker: DjangoWorkerFixup) -> None:
    assert worker.db_reuse_max == 1000
    worker.db_reuse_max = 2
    assert len({session(worker) for _ in range(10)}) > 1
