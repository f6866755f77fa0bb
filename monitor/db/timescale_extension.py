"""What the server has of TimescaleDB, and under which licence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.db import connection

LEAST_VERSION = (2, 21)  # a refresh can be told how much to do at once; older ones were never tried
CREATE = "CREATE EXTENSION IF NOT EXISTS timescaledb"

# By itself it refuses to change rows beside which 100,000 are to be unpacked: those of a few series. How much
# is changed at once is bounded by who does so. A server without TimescaleDB lets anybody set such a name.
_LIFT_LIMIT = "SET timescaledb.max_tuples_decompressed_per_dml_transaction = 0"

# The variable is there as soon as the server has loaded the library: nothing else can be read by everybody.
_ASKED = """
SELECT (SELECT default_version FROM pg_available_extensions WHERE name = 'timescaledb'),
    current_setting('timescaledb.bgw_launcher_poll_time', true) IS NOT NULL,
    (SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'),
    current_setting('timescaledb.license', true)
"""


class TimescaleUnavailable(Exception):
    """TimescaleDB cannot be used here; says what somebody has to do. For good."""


@dataclass(frozen=True)
class Extension:
    """*available*: the version whose files the server has. *installed*: that of this database. *licence* is
    ``timescale`` or ``apache``, known once it is installed."""

    available: str | None
    is_loaded: bool
    installed: str | None
    licence: str | None

    @property
    def is_apache(self) -> bool:
        """Whether it is without compression and continuous aggregates."""
        return self.licence == "apache"

    @property
    def is_usable(self) -> bool:
        """Whether a depot could go over to it."""
        return self.is_loaded and _is_new_enough(self.installed or self.available)

    def check(self) -> None:
        """Raises TimescaleUnavailable: a depot cannot go over to it."""
        if self.available is None:
            raise TimescaleUnavailable(
                "this PostgreSQL has no TimescaleDB: looked for 'timescaledb' in pg_available_extensions. "
                "Install its package for the server, or where the server is the embedded one set "
                "GRIDCAST_TIMESCALEDB to a directory with its files"
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
    """That of the database that is connected to."""
    with connection.cursor() as cursor:
        cursor.execute(_ASKED)
        return Extension(*cursor.fetchone())


def lift_decompression_limit(*, connection: Any, **_: Any) -> None:
    """Let a new *connection* change as many compressed rows as it has to: told of each by Django."""
    with connection.cursor() as cursor:
        cursor.execute(_LIFT_LIMIT)


def create() -> Extension:
    """Have the extension in this database. Raises TimescaleUnavailable."""
    extension().check()
    with connection.cursor() as cursor:
        cursor.execute(CREATE)
    return extension()


def _is_new_enough(version: str | None) -> bool:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version or "")[:2])
    return numbers >= LEAST_VERSION
