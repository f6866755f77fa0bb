"""Advisory locks: how long they are held, lock timeouts, and that no other module takes any by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection, transaction

from monitor.core.db.advisory_locks import (
    AdvisoryLock,
    is_lock_timeout,
    lock_until_commit,
    retry_on_lock_timeout,
    session_lock,
    transaction_lock_timeout,
    try_lock_until_commit,
)
from monitor.core.env import ROOT
from monitor.models import Suite

pytestmark = pytest.mark.django_db(transaction=True)
LOCK = AdvisoryLock.HOUSEKEEPING


@contextmanager
def another_session(statement: str, *parameters: int) -> Iterator[None]:
    """Execute *statement* in a transaction of another session, which is rolled back after the block."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(statement, parameters)
            try:
                yield
            finally:  # closing the connection would release the locks only later
                cursor.execute("ROLLBACK")
                cursor.execute("SELECT pg_advisory_unlock_all()")
    finally:
        other.close()


def is_locked() -> bool:
    """Return whether any session of this database holds ``LOCK``."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database"
            " WHERE datname = current_database() AND locktype = 'advisory' AND objid = %s AND granted)",
            [LOCK],
        )
        return bool(cursor.fetchone()[0])


def test_only_one_module_takes_advisory_locks() -> None:
    users = {
        file.name for file in (ROOT / "monitor").rglob("*.py") if "pg_advisory" in file.read_text("utf-8")
    }
    migrations = {"0009_administrators_remain.py", "0014_ended_sessions.py"}
    assert users == {"advisory_locks.py", *migrations}, "and a trigger"


def test_a_session_lock_is_not_taken_while_another_session_holds_it() -> None:
    with another_session("SELECT pg_advisory_lock(%s)", LOCK), session_lock(LOCK) as is_taken:
        assert not is_taken
    with session_lock(LOCK) as is_taken:
        assert is_taken


def test_a_session_lock_is_released_after_an_error() -> None:
    with pytest.raises(ValueError, match="a test"), session_lock(LOCK):
        raise ValueError("a test")
    assert not is_locked()


def test_a_transaction_lock_is_held_until_the_commit() -> None:
    with transaction.atomic():
        lock_until_commit(LOCK)
        assert is_locked()
    assert not is_locked()
    with another_session("SELECT pg_advisory_xact_lock(%s)", LOCK), transaction.atomic():
        assert not try_lock_until_commit(LOCK)


def test_only_a_lock_timeout_is_recognised_as_one() -> None:
    Suite.objects.create(name="main")
    with (
        another_session("LOCK TABLE monitor_suite IN ACCESS EXCLUSIVE MODE"),
        pytest.raises(OperationalError) as timeout,
        transaction_lock_timeout(50),
    ):
        Suite.objects.update(title="changed")
    assert is_lock_timeout(timeout.value)
    assert not is_lock_timeout(OperationalError("the connection is closed"))


def test_work_is_repeated_until_it_gets_its_locks() -> None:
    Suite.objects.create(name="main")
    attempts: list[int] = []

    def change() -> int:
        attempts.append(len(attempts))
        if len(attempts) < 3:
            with another_session("LOCK TABLE monitor_suite IN ACCESS EXCLUSIVE MODE"):
                return Suite.objects.update(title="too early")
        return Suite.objects.update(title="changed")

    assert retry_on_lock_timeout(change) == 1
    assert attempts == [0, 1, 2]
    assert Suite.objects.get().title == "changed"
