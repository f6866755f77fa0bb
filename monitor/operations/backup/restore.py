"""Restore a backup into an empty database and verify that it is complete."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from monitor.core.db import server_version
from monitor.core.db.timescale_extension import CREATE, extension
from monitor.operations.backup import manifest, pg_tools
from monitor.operations.backup.create import DUMP

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from monitor.operations.backup.manifest import Manifest

# Relations of the schema public that belong to no extension.
_COUNT_RELATIONS = """
SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = 'public' AND NOT EXISTS (
    SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
)
"""
_VERSIONS = "SELECT version FROM pg_available_extension_versions WHERE name = 'timescaledb' ORDER BY version"
_SHOWN_DIFFERENCES = 10


class RestoreError(Exception):
    """The backup was not restored; the message says why and what the database holds now."""


def create_database() -> None:
    """Create the depot's database. Raises RestoreError if it exists or the server refuses."""
    name = connection.settings_dict["NAME"]
    parameters = {**connection.get_connection_params(), "dbname": "postgres"}
    for django_option in ("context", "cursor_factory", "prepare_threshold"):
        parameters.pop(django_option, None)
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        with psycopg.connect(**parameters, autocommit=True) as session:
            session.execute(statement.format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise RestoreError(f"cannot create the database {name}: {error}".strip()) from error


def restore(source: Path, *, jobs: int = 1) -> Manifest:
    """Restore the backup in *source*, verify the database against the manifest, and return the manifest.

    pg_restore uses *jobs* connections, but only one for a backup with TimescaleDB.

    Raises:
        ManifestError, DumpError, RestoreError: the restore failed. With *jobs* above 1, or for a backup with
            TimescaleDB, the database may hold a part of the backup.
    """
    expected = manifest.read(source)
    _check(expected)
    program = pg_tools.find("pg_restore", least=max(expected.dumped_by, server_version.major()))
    options = ["--no-owner", "--no-privileges", "--exit-on-error"]
    if expected.timescaledb is None:  # parallel jobs violate references between the chunks of a hypertable
        options.append(f"--jobs={jobs}" if jobs > 1 else "--single-transaction")
    with _timescaledb_prepared(expected.timescaledb):
        try:
            pg_tools.run(program, *options, str(source / DUMP))
        except pg_tools.DumpError as error:
            if "--single-transaction" in options:
                raise
            name = connection.settings_dict["NAME"]
            raise RestoreError(
                f"{error}. The database {name} may hold a part of the backup: drop it first"
            ) from error
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    _verify(expected)
    return expected


def _check(backup: Manifest) -> None:
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_RELATIONS)
        (relations,) = cursor.fetchone()
    if relations:
        raise RestoreError(
            f"the database {name} is not empty: it has {relations} tables, indexes and views. Create a new "
            "database, let DATABASE_URL name it, and try again"
        )
    migrations = {name for app, name in MigrationLoader(None).disk_migrations if app == "monitor"}
    if backup.schema not in migrations:
        raise RestoreError(
            f"the backup is of another version of gridcast: this one has no migration {backup.schema}"
        )
    if backup.timescaledb is not None:
        _check_timescaledb(backup.timescaledb)


def _check_timescaledb(version: str) -> None:
    """Require TimescaleDB in the *version* of the backup: a dump contains the extension's own tables."""
    local = extension()
    local.check()
    with connection.cursor() as cursor:
        cursor.execute(_VERSIONS)
        available = [name for (name,) in cursor.fetchall()]
    if version != local.installed and (local.installed or version not in available):
        raise RestoreError(
            f"the backup needs TimescaleDB {version}, and this server has "
            f"{local.installed or ', '.join(available)}: install the same version"
        )


@contextmanager
def _timescaledb_prepared(version: str | None) -> Iterator[None]:
    """Create TimescaleDB in *version*, and stop its background workers during the block.

    If *version* is None, the backup does not use TimescaleDB, and nothing is done.
    """
    if version is None:
        yield
        return
    with connection.cursor() as cursor:
        # The template of the database may have installed it already.
        cursor.execute(f"{CREATE} VERSION {connection.ops.quote_name(version)}")
        cursor.execute("SELECT timescaledb_pre_restore()")
    connection.close()  # an open session keeps the extension's cached state
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT timescaledb_post_restore()")
        connection.close()


def _verify(expected: Manifest) -> None:
    """Compare the database with the manifest; if they differ, raise RestoreError with the differences."""
    with transaction.atomic():
        actual = manifest.describe(expected.taken_at, dumped_by=expected.dumped_by)
    differences = expected.differences(actual)
    if differences:
        shown = "; ".join(differences[:_SHOWN_DIFFERENCES])
        raise RestoreError(f"the restored database differs from the backup, drop it: {shown}")
