"""The accounts of the services in the database: each does its work, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction
from django.test import Client
from django.utils import timezone
from psycopg import sql

from monitor.core.db.accounts import SERVICES, grant, role_of
from monitor.models import RawReport, Run, Series
from monitor.models.run import State
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.run_now import run_now
from monitor.runs.worker.run_claimed import run_claimed
from reporters import report as wire
from tests.databases import using_settings
from tests.monitor.builders import circle_report

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "correct horse battery"


@pytest.fixture
def accounts() -> Iterator[None]:
    roles = [sql.Identifier(role) for role in grant(dict.fromkeys(SERVICES, PASSWORD))]
    yield
    for role in roles:
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("DROP OWNED BY {}").format(role).as_string(connection.connection))
            cursor.execute(sql.SQL("DROP ROLE {}").format(role).as_string(connection.connection))


@contextmanager
def connected_as(service: str) -> Iterator[None]:
    with using_settings({"USER": role_of(service), "PASSWORD": PASSWORD}):
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_user")
            assert cursor.fetchone() == (role_of(service),)
        yield


def assert_denied(statement: str) -> None:
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"), transaction.atomic():
        connection.cursor().execute(statement)


def test_the_web_server_stores_late_reports_and_shows_pages(circle: Series, accounts: None) -> None:
    visitor = Client()
    visitor.force_login(User.objects.create_superuser("ada"))
    Series.objects.update(created_at=timezone.now() - timedelta(days=5000))
    before = timezone.now().replace(microsecond=0) - timedelta(days=4000)  # a year that has no partition
    with connected_as("web"):
        receipt = ingest(wire.to_json(circle_report(before, ring_seconds=1.0)))
        assert receipt.accepted, receipt
        assert RawReport.objects.get().slot == before
        for path in ("/", "/series/circle/", "/admin/", "/healthz"):
            assert visitor.get(path).status_code == 200, path
    connection.cursor().execute(
        f"DROP TABLE monitor_run_{before:%Y}, monitor_rawreport_{before:%Y}, monitor_sample_{before:%Y}"
    )


def test_a_home_reporter_runs_a_claimed_run(
    circle: Series, accounts: None, settings: Settings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    run_now(circle, who="ada")
    (claim,) = claim_due(timezone.now())
    with connected_as("reporter"):
        run_claimed([claim.run_id])
    assert Run.objects.get().state == State.PASSED


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (number int)",
        "DROP TABLE monitor_sample",
        "ALTER TABLE monitor_series ADD mine int",
        "TRUNCATE monitor_run",
        "CREATE ROLE mine SUPERUSER",
        "COPY monitor_series TO PROGRAM 'cat'",
    ],
)
def test_a_service_changes_rows_and_not_the_schema(service: str, statement: str, accounts: None) -> None:
    with connected_as(service):
        assert_denied(statement)


@pytest.mark.parametrize(
    "table",
    [
        "auth_user",
        "auth_user_groups",
        "django_session",
        "monitor_apitoken",
        "monitor_reporterkey",
        "monitor_enrolmentcode",
    ],
)
def test_a_home_reporter_reads_no_credentials_and_grants_no_rights(table: str, accounts: None) -> None:
    with connected_as("reporter"):
        assert_denied(f"SELECT FROM {table}")
        assert_denied(f"DELETE FROM {table}")


@pytest.mark.parametrize(
    ("table", "label"),
    [("auth_user", "2026"), ("monitor_run", "2026 (LIKE auth_user); --"), ("monitor_run_2026_01", "2026")],
)
def test_partitions_are_created_of_partitioned_tables_only(table: str, label: str, accounts: None) -> None:
    with connected_as("web"), pytest.raises(Exception, match="no table of gridcast has the partition"):
        connection.cursor().execute("SELECT monitor_attach_partition(%s, %s, now(), now())", [table, label])


def test_granting_again_changes_the_password(accounts: None) -> None:
    grant({"web": "another password"})
    with using_settings({"USER": role_of("web"), "PASSWORD": "another password"}):
        connection.cursor().execute("SELECT count(*) FROM auth_user")


def test_the_command_needs_long_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_DB_WEB_PASSWORD", "short")
    with pytest.raises(CommandError, match="GRIDCAST_DB_WEB_PASSWORD: expected a password of at least 12"):
        call_command("depot", "accounts")


def test_an_account_that_may_not_create_roles_is_named(accounts: None) -> None:
    with connected_as("web"), pytest.raises(Exception, match=r"cannot create roles as .*_web"):
        grant({"reporter": PASSWORD})
