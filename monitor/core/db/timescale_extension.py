"""Ask the server for the version and the licence of its TimescaleDB."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.db import connection

LEAST_VERSION = (2, 21)  # the first whose refresh takes the option buckets_per_batch
CREATE = "CREATE EXTENSION IF NOT EXISTS timescaledb"

# By default TimescaleDB refuses statements that decompress more than 100,000 rows: the rows of a few series.
# The callers bound their own work. A server without TimescaleDB accepts any setting with a prefix.
_LIFT_LIMIT = "SET timescaledb.max_tuples_decompressed_per_dml_transaction = 0"

# The setting exists as soon as the server has loaded the library; any role may read it.
_QUERY = """
SELECT (SELECT default_version FROM pg_available_extensions WHERE name = 'timescaledb'),
    current_setting('timescaledb.bgw_launcher_poll_time', true) IS NOT NULL,
    (SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'),
    current_setting('timescaledb.license', true)
"""


class TimescaleUnavailable(Exception):
    """TimescaleDB cannot be used here; the message says what the administrator has to do.

    The error is permanent: a retry does not help.
    """


@dataclass(frozen=True)
class Extension:
    """The state of TimescaleDB on the server and in the connected database.

    Attributes:
        available: version whose files the server has; None without files.
        is_loaded: whether the server has loaded the library.
        installed: version in the connected database; None if the database lacks the extension.
        licence: "timescale" or "apache"; None before the library is loaded.
    """

    available: str | None
    is_loaded: bool
    installed: str | None
    licence: str | None

    @property
    def is_apache(self) -> bool:
        """Return whether the licence excludes compression and continuous aggregates."""
        return self.licence == "apache"

    @property
    def is_usable(self) -> bool:
        """Return whether a depot can migrate to TimescaleDB."""
        return self.is_loaded and _is_new_enough(self.installed or self.available)

    def check(self) -> None:
        """Raise TimescaleUnavailable unless a depot can migrate to TimescaleDB."""
        if self.available is None:
            raise TimescaleUnavailable(
                "this PostgreSQL has no TimescaleDB: 'timescaledb' is not in pg_available_extensions. "
                "Install its package for the server; for the embedded server set GRIDCAST_TIMESCALEDB to a "
                "directory with its files"
            )
        if not self.is_loaded:
            raise TimescaleUnavailable(
                "the server has TimescaleDB's files, but has not loaded it: set "
                "shared_preload_libraries = 'timescaledb' in postgresql.conf and restart PostgreSQL"
            )
        if not self.is_usable:
            least = ".".join(str(number) for number in LEAST_VERSION)
            raise TimescaleUnavailable(
                f"expected TimescaleDB {least} or newer, got {self.installed or self.available}"
            )


def extension() -> Extension:
    """Return the state of TimescaleDB in the connected database."""
    with connection.cursor() as cursor:
        cursor.execute(_QUERY)
        available, is_loaded, installed, licence = cursor.fetchone()
    return Extension(available, is_loaded, installed, licence)


def lift_decompression_limit(*, connection: Any, **_: Any) -> None:
    """Let the new *connection* change any number of compressed rows. Handles ``connection_created``."""
    with connection.cursor() as cursor:
        cursor.execute(_LIFT_LIMIT)


def create() -> Extension:
    """Create the extension in the connected database. Raises TimescaleUnavailable if ``check`` does."""
    extension().check()
    with connection.cursor() as cursor:
        cursor.execute(CREATE)
    return extension()


def _is_new_enough(version: str | None) -> bool:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version or "")[:2])
    return numbers >= LEAST_VERSION
