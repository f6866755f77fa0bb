"""Run the embedded PostgreSQL for one command, where the service is stopped."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg

from monitor.operations.embedded import purpose, urls
from monitor.operations.embedded.servers import needed_servers
from monitor.operations.supervisor import AlreadySupervised, Service, Supervisor

UP_WITHIN_SECONDS = 300.0


@contextlib.contextmanager
def depot_server(var: Path, environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Have the embedded PostgreSQL of *var* run during the block: it is started if it does not run yet.

    Nothing is started if *environment* names a server, or if *var* has no state.

    Raises:
        EmbeddedError: PostgreSQL cannot run here.
        NotUp: PostgreSQL did not come up; the message has the end of its log.
    """
    with contextlib.ExitStack() as running:
        if services := _stopped(var, environment):
            supervisor = Supervisor(
                services, status_file=var / "run" / "supervisor.json", log_dir=var / "log"
            )
            with contextlib.suppress(AlreadySupervised):  # the service is starting, with its PostgreSQL
                running.enter_context(supervisor.running(up_within_seconds=UP_WITHIN_SECONDS))
        yield


def _stopped(var: Path, environment: Mapping[str, str]) -> list[Service]:
    if environment.get("DATABASE_URL") or not purpose.current(var):
        return []
    try:
        psycopg.connect(urls.postgres_url(var), connect_timeout=5).close()
    except psycopg.OperationalError:
        only_postgres = {**environment, "REDIS_URL": "not needed"}
        return [server.service() for server in needed_servers(var, only_postgres).values()]
    return []
