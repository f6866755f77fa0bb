"""Fixtures and settings of every test. ``servers.py`` starts the servers of the run before Django starts."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TestCase, TransactionTestCase
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from psycopg import sql
from psycopg.pq import TransactionStatus
from pytest_django.plugin import DjangoDbBlocker

from monitor.core.db import partitions
from monitor.models.role import UserRole
from tests import servers
from tests.databases import postgres_session, using_settings

# Modules that take seven seconds or more, longest first: a worker that got one last would keep the others
# waiting.
LONG = (
    "test_batch",
    "test_demo",
    "test_ends",
    "test_browser_updates",
    "test_cross",
    "test_schemathesis",
    "test_browser_controls",
    "test_slurm",
    "test_storage_sweep",
    "test_transfers",
    "test_shells",
    "test_agent",
    "test_openssh",
    "test_containment",
    "test_prometheus",
    "test_postgres",
    "test_browser",
    "test_deploy",
    "test_init_command",
    "test_agent_end_to_end",
    "test_every_way",
    "test_authorisation",
    "test_hidden_names",
    "test_acts",
    "test_site_weather",
    "test_group",
    "test_series",
    "test_reporter_exchange",
    "test_forecasts",
    "test_run_claimed",
    "test_hostile_server",
    "test_site_copies",
    "test_admin",
    "test_forecasting_commands",
    "test_forecasters",
    "test_screens",
    "test_weight",
    "test_site_policy_end_to_end",
    "test_backup",
    "test_provoked",
    "test_containment",
)


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEMPLATE = "gridcast_template"
TEMPLATE_LOCK = 0x74656D70  # "temp"

gc.disable()  # until the tests are collected: what is allocated until then is never freed


def pytest_configure(config: pytest.Config) -> None:
    """Leave out what only protects or speeds up a server that runs for long."""
    if config.getoption("markexpr") == "not nightly":
        # Hypothesis would parse all code for constants, in each worker: too much for ten examples a test.
        vars(providers)["is_local_module_file"] = lambda path: False
    django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    django_settings.CACHES["default"]["KEY_PREFIX"] = (
        f"test-{os.getpid()}"  # other workers count for themselves
    )
    django_settings.WHITENOISE_AUTOREFRESH = True  # else each test client reads all static files
    django_settings.GRIDCAST_FORECAST_SECONDS = 60.0  # a busy machine needs more than a client waits for


# The duration of an example depends on the load of the machine.
settings.register_profile(
    "house", max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", settings.get_profile("house"), max_examples=500)
settings.load_profile("house")


# Django's own way truncates every table and makes permissions again: two hundred times a run.
_KEPT = {
    *("django_migrations", "django_content_type", "auth_permission"),
    *("auth_group", "auth_group_permissions"),  # those of roles, which are made after a migration
}
_EMPTY = """
DO $$
DECLARE name text; has_rows boolean;
BEGIN
    PERFORM set_config('gridcast.audit_retention', 'on', true);
    FOREACH name IN ARRAY '{%s}'::text[] LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %%I)', name) INTO has_rows;
        IF has_rows THEN EXECUTE format('DELETE FROM %%I', name); END IF;
    END LOOP;
    DELETE FROM auth_group_permissions USING auth_group
        WHERE auth_group.id = group_id AND auth_group.name <> ALL ('{%s}');
    DELETE FROM auth_group WHERE auth_group.name <> ALL ('{%s}');
END $$
"""


def empty_tables(_: TransactionTestCase | None = None) -> None:
    """Delete all rows after a test that commits. Foreign keys are deferred: the order does not matter."""
    names = set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - _KEPT
    with transaction.atomic(), connection.cursor() as cursor:
        roles = ",".join(UserRole.values)
        cursor.execute("SET LOCAL gridcast.last_administrator_may_go = 'on'")
        cursor.execute(_EMPTY % (",".join(sorted(names)), roles, roles))


def _can_check_constraints(_: TestCase, database: BaseDatabaseWrapper) -> bool:
    """Whether the transaction still holds; Django's own way asks the server, once for each test."""
    opened = database.connection
    return (
        not database.needs_rollback
        and opened is not None
        and opened.info.transaction_status in (TransactionStatus.IDLE, TransactionStatus.INTRANS)
    )


TransactionTestCase._fixture_teardown = empty_tables  # type: ignore[attr-defined]
TestCase._should_check_constraints = _can_check_constraints  # type: ignore[attr-defined]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import this worker's share of the modules first: each compiles a part of a fresh checkout, not all.

    The others come with the collection, which also tells what cannot be imported.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ or session.config.args != session.config.getini("testpaths"):
        return
    worker, workers = os.environ["PYTEST_XDIST_WORKER"], int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    root = session.config.rootpath
    for module in sorted(root.glob("tests/**/test_*.py"))[int(worker.removeprefix("gw")) :: workers]:
        if "bench" not in module.parts:
            with contextlib.suppress(Exception, pytest.skip.Exception):
                importlib.import_module(".".join(module.relative_to(root).with_suffix("").parts))


@pytest.hookimpl(trylast=True)  # after the random order is set
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest modules first; keep the random order of the others."""
    rank = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(LONG)))


def pytest_collection_finish() -> None:
    """Exclude what has been loaded so far from garbage collection: none of it is freed before the end.

    Garbage stays, too: to find it takes .7 s in each worker.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, django_db_blocker: DjangoDbBlocker
) -> None:
    """Clone the database of this worker from a template that the first worker migrates.

    Only on the server of this run: on another one the template would outlive the schema.
    """
    if servers.OWN_SERVER not in os.environ:
        return
    with django_db_blocker.unblock(), postgres_session() as server:
        server.execute("SELECT pg_advisory_lock(%s)", [TEMPLATE_LOCK])  # until the connection is closed
        if server.execute("SELECT FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone() is None:
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
            with using_settings({"NAME": TEMPLATE}):
                call_command("migrate", verbosity=0)
                _create_partitions()
    connection.settings_dict["TEST"]["TEMPLATE"] = TEMPLATE


def _create_partitions() -> None:
    """Create the partitions for the times that most tests use; an expansion looks back a week."""
    times = (NOON, datetime.now(UTC))
    partitions.create_for([*times, *(time - timedelta(days=7) for time in times)])


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Add partitions; in the end, close connections left by threads."""
    with django_db_blocker.unblock():
        _create_partitions()
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    connections.close_all()
