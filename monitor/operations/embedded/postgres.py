"""The embedded PostgreSQL: listens on a Unix socket, is durable, and can restart however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psycopg

from monitor.core import env
from monitor.operations.supervisor import Service

from . import places, timescale, urls
from .binaries import PostgresPrograms, postgres_programs
from .data_directory import ENVIRONMENT, DataDirectory, data_location
from .server_user import ServerUser, server_user

PORT = 5432  # only names the socket
RECOVERY_SECONDS = 3600.0  # after a crash it first repeats the log of up to an hour of writes

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_connections": "100",
    # A query without a time range locks each monthly partition of the ledger with its indexes.
    "max_locks_per_transaction": "256",
    "max_wal_size": "1GB",
    # Of solid-state disks and the page cache. By the default of 4, PostgreSQL would plan every query for
    # rollups again where the history is long, which takes longer than to execute it.
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# For tests: never waits for the disk.
THROWAWAY_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "64MB",
}


class PostgreSQL:
    """The PostgreSQL of one state directory. With ``durable=False`` a crash of the machine may lose its data.

    *timescaledb* is the directory of TimescaleDB's files (``timescale.py``); if it is None, the server runs
    without TimescaleDB.

    Raises:
        ProgramNotFound: PostgreSQL is not installed.
        PreparationFailed: the data belong to another user or cannot be reached, no user can run the server,
            or TimescaleDB cannot be loaded.
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
        self._user = server_user(var / "postgres")
        self._data = data_location(var, self._user)
        self._original_programs = programs or postgres_programs()
        self._programs = self._reachable_programs()
        self._settings = SETTINGS | ({} if durable else THROWAWAY_SETTINGS)
        if timescaledb is not None:
            self._settings |= timescale.settings(timescaledb, self._programs, self._user)
        self._data_directory = DataDirectory(
            self.var, self._data, self._programs, self._user, urls.POSTGRES_NAME
        )

    def service(self) -> Service:
        """Return the service to supervise. Its stop signal SIGINT is PostgreSQL's fast shutdown."""
        settings = self._settings | {"unix_socket_directories": str(urls.postgres_sockets(self.var))}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Service(
            name=self.name,
            argv=[str(self._programs.postgres), "-D", str(self._data), *options],
            env=ENVIRONMENT,
            directory=Path("/"),  # every user can enter it
            user=None if self._user is None else (self._user.uid, self._user.gid),
            before=self.prepare,
            ready=self.ready,
            ready_seconds=RECOVERY_SECONDS,
            asleep_seconds=300.0,  # the postmaster wakes once a minute
            stop_signal=signal.SIGINT,
            grace_seconds=20.0,
        )

    def prepare(self) -> None:
        """Create or repair all directories and files that a start needs; the server must not be running.

        Raises:
            EmbeddedError: a directory or a file cannot be created.
        """
        self._make_sockets()
        if self._data.parent == places.relocation(self.var):
            places.make_relocation(self.var)
        if self._programs != self._original_programs:
            self._original_programs.copy_to(places.make_relocation(self.var))
        self._data_directory.make(sync=self._durable)
        self._data_directory.remove_stale_pid_files(urls.postgres_sockets(self.var))

    def ready(self) -> bool:
        """Return whether the server accepts connections."""
        try:
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _make_sockets(self) -> None:
        places.make_socket_directory(self.var)
        sockets = urls.postgres_sockets(self.var)
        sockets.mkdir(mode=0o700, exist_ok=True)
        if self._user is not None:
            os.chown(sockets, self._user.uid, self._user.gid)

    def _reachable_programs(self) -> PostgresPrograms:
        """Return the programs, or their copy if the server's user cannot reach them."""
        programs = self._original_programs
        if self._user is None or _can_run(programs, self._user):
            return programs
        return programs.copy_in(places.relocation(self.var))


def _can_run(programs: PostgresPrograms, user: ServerUser) -> bool:
    try:
        completed = subprocess.run(
            [programs.initdb, "--version"], cwd="/", capture_output=True, check=False, **user.drop()
        )
    except PermissionError:
        return False
    return completed.returncode == 0
