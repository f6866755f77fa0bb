"""PostgreSQL cancels a long statement of the web server, and the answer says so in words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.test import Client
from pytest_django import Settings

from monitor.core.db.accounts import grant, role_of
from monitor.core.db.snapshot import STATEMENT_TIMEOUT_SECONDS, snapshot
from monitor.core.env import ROOT
from monitor.core.statement_timeout import is_cancelled, limit_statements
from tests.databases import postgres_session, using_settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def limited(settings: Settings) -> Iterator[None]:
    """Limit the statements of new connections to a second, as the web server does."""
    settings.GRIDCAST_WEB_STATEMENT_SECONDS = 1
    with using_settings({"OPTIONS": dict(connection.settings_dict["OPTIONS"])}):
        limit_statements()
        yield


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Have another session lock *table*, so that a statement that reads it does not end."""
    with postgres_session(dbname=connection.settings_dict["NAME"]) as other, other.transaction():
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


@pytest.fixture
def visitor() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ada"))
    return client


def test_a_page_says_that_it_took_too_long(visitor: Client, limited: None) -> None:
    with locked("monitor_alert"):
        answer = visitor.get("/alerts/")
        assert answer.status_code == 503
        assert "<h1>This took too long</h1>" in answer.content.decode()
        assert "more than 1 second for some parts" in answer.content.decode()
        part = visitor.get("/alerts/", headers={"HX-Request": "true"})
        assert (part.status_code, part["HX-Retarget"]) == (503, "#banner")
        assert "<html" not in part.content.decode()
    assert visitor.get("/alerts/").status_code == 200


def test_one_part_that_took_too_long_leaves_the_others(visitor: Client, limited: None) -> None:
    with locked("monitor_hold"):
        answer = visitor.get("/")
    text = answer.content.decode()
    assert answer.status_code == 200
    assert text.count("This part could not be computed.") == 1
    assert "The database needed more than 1 second." in text


def test_the_api_answers_with_a_problem(visitor: Client, limited: None) -> None:
    with locked("monitor_series"):
        answer = visitor.get("/api/v1/series")
    assert (answer.status_code, answer.json()["code"]) == (503, "too_slow")
    assert int(answer["Retry-After"]) > 0
    assert "within 1 s" in answer.json()["detail"]


def test_metrics_do_not_say_that_the_database_is_down(visitor: Client, limited: None) -> None:
    with locked("monitor_series"):
        assert visitor.get("/metrics").status_code == 503


def test_a_stream_has_more_time_for_each_fetch(limited: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("1s",)
        with snapshot():
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == (f"{STATEMENT_TIMEOUT_SECONDS // 60}min",)
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("1s",)


def test_a_lock_that_is_not_granted_is_no_cancelled_statement(limited: None) -> None:
    with locked("monitor_series"), connection.cursor() as cursor:
        with pytest.raises(OperationalError) as refused, transaction.atomic():
            cursor.execute("LOCK TABLE monitor_series NOWAIT")
        assert not is_cancelled(refused.value)
        with pytest.raises(OperationalError) as cancelled:
            cursor.execute("SELECT pg_sleep(60)")
        assert is_cancelled(cancelled.value)


def test_the_account_of_the_web_server_has_the_limit_and_that_of_reporters_has_none() -> None:
    grant({"web": "correct horse battery", "reporter": "correct horse battery"})
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT rolname, rolconfig FROM pg_roles WHERE rolname LIKE '%\\_web'")
            assert dict(cursor.fetchall())[role_of("web")] == ["statement_timeout=30s"]
            cursor.execute("SELECT rolconfig FROM pg_roles WHERE rolname = %s", [role_of("reporter")])
            assert cursor.fetchone() == (None,)
    finally:
        with connection.cursor() as cursor:
            for service in ("web", "reporter"):
                cursor.execute(f'DROP OWNED BY "{role_of(service)}"')
                cursor.execute(f'DROP ROLE "{role_of(service)}"')


_STARTED = """
import monitor.wsgi
from django.db import connection
print(connection.settings_dict["OPTIONS"]["options"])
"""


def test_each_web_process_has_the_limit_and_keeps_the_options_of_its_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = "postgresql://127.0.0.1:1/none?options=-c%20jit%3Doff"
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("GRIDCAST_WEB_STATEMENT_SECONDS", "7")
    told = subprocess.run(
        [sys.executable, "-c", _STARTED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "-c jit=off -c statement_timeout=7s"
