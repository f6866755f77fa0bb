"""Our own PostgreSQL: on a Unix socket, durable, restartable after anything."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psycopg

from monitor import env
from monitor.supervisor import Service

from . import places, timescale, urls
from .binaries import PostgresPrograms, postgres_programs
from .data_directory import ENVIRONMENT, DataDirectory, location
from .server_user import ServerUser, for_data

PORT = 5432  # only part of the socket's name

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_connections": "100",
    # Who does not know when a run was locks each month of the ledger, with its indexes.
    "max_locks_per_transaction": "256",
    "max_wal_size": "1GB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# For data that nobody will miss: nothing waits for the disk.
THROWAWAY_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "64MB",
}


class PostgreSQL:
    """The server of one directory of state. With ``durable=False`` a crash of the machine may cost its data.

    *timescaledb* is the directory of TimescaleDB's files, which are loaded (``timescale.py``).

    Raises:
        NoProgram: there is no PostgreSQL for this platform.
        PreparationFailed: the data are somebody else's, cannot be reached, or nobody could run the server; or
            TimescaleDB cannot be loaded.
    """

    name = "postgres"

    def __init__(
        self,
        var: Path,
        *,
        durable: bool = True,
        programs: PostgresPrograms | None = None,
        timescaledb: Path | None = None,
    ) -> None:
        self.var = env.make_var_directory(var)
        self.url = urls.postgres_url(var)
        self._durable = durable
        self._identity = for_data(var / "postgres")
        self._data = location(var, self._identity)
        self._original_programs = programs or postgres_programs()
        self._programs = self._reachable_programs()
        self._settings = SETTINGS | ({} if durable else THROWAWAY_SETTINGS)
        if timescaledb is not None:
            self._settings |= timescale.settings(timescaledb, self._programs, self._identity)
        self._cluster = DataDirectory(
            self.var, self._data, self._programs, self._identity, urls.POSTGRES_NAME
        )

    def service(self) -> Service:
        """For the supervisor. SIGINT is PostgreSQL's fast shutdown: sessions are ended, data are written."""
        settings = self._settings | {"unix_socket_directories": str(urls.postgres_sockets(self.var))}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Service(
            name=self.name,
            argv=[str(self._programs.postgres), "-D", str(self._data), *options],
            env=ENVIRONMENT,
            directory=Path("/"),  # one that the server's user can surely enter
            user=None if self._identity is None else (self._identity.uid, self._identity.gid),
            before=self.prepare,
            ready=self.ready,
            stop_signal=signal.SIGINT,
            grace_seconds=20.0,
        )

    def prepare(self) -> None:
        """Make everything that a start needs; repairs what was left half made. Not while the server runs.

        Raises:
            EmbeddedError: it cannot be made.
        """
        self._make_sockets()
        if self._data.parent == places.relocated(self.var):
            places.relocated_made(self.var)
        if self._programs != self._original_programs:
            self._original_programs.copy_to(places.relocated_made(self.var))
        self._cluster.make(sync=self._durable)
        self._cluster.forget_dead_server(urls.postgres_sockets(self.var))

    def ready(self) -> bool:
        """Whether a session can be had."""
        try:
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _make_sockets(self) -> None:
        places.sockets_made(self.var)
        sockets = urls.postgres_sockets(self.var)
        sockets.mkdir(mode=0o700, exist_ok=True)
        if self._identity is not None:
            os.chown(sockets, self._identity.uid, self._identity.gid)

    def _reachable_programs(self) -> PostgresPrograms:
        """The programs, or their copy where the user that runs them cannot get at them."""
        programs = self._original_programs
        if self._identity is None or _runs(programs, self._identity):
            return programs
        return programs.copy_in(places.relocated(self.var))


def _runs(programs: PostgresPrograms, identity: ServerUser) -> bool:
    try:
        tried = subprocess.run(
            [programs.initdb, "--version"], cwd="/", capture_output=True, check=False, **identity.drop()
        )
    except PermissionError:
        return False
    return tried.returncode == 0
