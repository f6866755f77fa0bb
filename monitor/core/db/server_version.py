"""Report the version of the database server."""

from __future__ import annotations

from django.db import connection


def version() -> int:
    """Return PostgreSQL's version as a number: 150018 for version 15.18."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int")
        return int(cursor.fetchone()[0])


def major() -> int:
    return version() // 10_000
