"""Restore a backup into an empty database, and see that all of it is there."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from monitor.backup import manifest, pg_tools
from monitor.backup.create import DUMP
from monitor.db import server_version
from monitor.db.timescale_extension import CREATE, extension

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from monitor.backup.manifest import Manifest

_INHABITANTS = """
SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = 'public' AND NOT EXISTS (
    SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
)
"""
_VERSIONS = "SELECT version FROM pg_available_extension_versions WHERE name = 'timescaledb' ORDER BY version"


class RestoreError(Exception):
    """It was not restored; says why, and what is in the database now."""


def create_database() -> None:
    """Make the depot's database where there is none. Raises RestoreError."""
    told = connection.settings_dict
    parameters = {**connection.get_connection_params(), "dbname": "postgres"}
    for ours in ("context", "cursor_factory", "prepare_threshold"):
        parameters.pop(ours, None)
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        with psycopg.connect(**parameters, autocommit=True) as session:
            session.execute(statement.format(sql.Identifier(told["NAME"])))
    except psycopg.Error as error:
        raise RestoreError(f"cannot create the database {told['NAME']}: {error}".strip()) from error


def restore(source: Path, *, jobs: int = 1) -> Manifest:
    """Restore the backup in *source*; what it held, all of which is there now.

    Raises:
        ManifestError, DumpError, RestoreError: it is not; with more than one of *jobs* a part of it may be.
    """
    told = manifest.read(source)
    _check(told)
    program = pg_tools.find("pg_restore", least=max(told.dumped_by, server_version.major()))
    options = ["--no-owner", "--no-privileges", "--exit-on-error"]
    # Chunks of a hypertable refer to each other in ways that several at once do not respect.
    several = jobs > 1 and told.timescaledb is None
    if told.timescaledb is None:
        options.append(f"--jobs={jobs}" if several else "--single-transaction")
    with _prepared(told.timescaledb):
        try:
            pg_tools.run(program, *options, str(source / DUMP))
        except pg_tools.DumpError as error:
            if "--single-transaction" in options:
                raise
            name = connection.settings_dict["NAME"]
            raise RestoreError(
                f"{error}. A part of it may be in the database {name}: drop it first"
            ) from error
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    _verify(told)
    return told


def _check(told: Manifest) -> None:
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(_INHABITANTS)
        (inhabitants,) = cursor.fetchone()
    if inhabitants:
        raise RestoreError(
            f"the database {name} is not empty: it has {inhabitants} tables, indexes and views. A backup is "
            "restored into a new one only: create it, let DATABASE_URL name it, and try again"
        )
    known = {migration for app, migration in MigrationLoader(None).disk_migrations if app == "monitor"}
    if told.schema not in known:
        raise RestoreError(
            f"the backup is of a newer version, whose migration {told.schema} is not known here"
        )
    if told.timescaledb is not None:
        _check_timescaledb(told.timescaledb)


def _check_timescaledb(version: str) -> None:
    """A dump is of the extension's own tables, too: they are as its *version* has them."""
    has = extension()
    has.check()
    with connection.cursor() as cursor:
        cursor.execute(_VERSIONS)
        versions = [one for (one,) in cursor.fetchall()]
    got = has.installed or ", ".join(versions)
    if version != has.installed and (has.installed or version not in versions):
        raise RestoreError(
            f"the backup is of TimescaleDB {version}, and here it is {got}: it has to be the same"
        )


@contextmanager
def _prepared(timescaledb: str | None) -> Iterator[None]:
    """As TimescaleDB wants it: its version first, and nothing of it at work meanwhile."""
    if timescaledb is None:
        yield
        return
    with connection.cursor() as cursor:
        # A database may have it from the template that it was made of.
        cursor.execute(f"{CREATE} VERSION {connection.ops.quote_name(timescaledb)}")
        cursor.execute("SELECT timescaledb_pre_restore()")
    connection.close()  # a session that is there already keeps its cache
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT timescaledb_post_restore()")
        connection.close()


def _verify(told: Manifest) -> None:
    """Hold what is there now against what was there. Raises RestoreError."""
    with transaction.atomic():
        found = manifest.manifest(told.taken_at, dumped_by=told.dumped_by)
    differences = told.differences(found)
    if differences:
        shown = "; ".join(differences[:10])
        raise RestoreError(f"what was restored is not what was backed up, drop it: {shown}")
