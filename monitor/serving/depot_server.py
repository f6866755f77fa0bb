"""Run the embedded PostgreSQL for one command, where the service is stopped."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from monitor.embedded import purpose
from monitor.embedded.servers import needed_servers
from monitor.supervisor import AlreadySupervised, Supervisor

UP_WITHIN_SECONDS = 300.0


@contextlib.contextmanager
def depot_server(var: Path, environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Have the embedded PostgreSQL of *var* run during the block: it is started if it does not run yet.

    Nothing is started if *environment* names a server, or if *var* has no state.

    Raises:
        EmbeddedError: PostgreSQL cannot run here.
        NotUp: PostgreSQL did not come up; the message has the end of its log.
    """
    only_postgres = {**environment, "REDIS_URL": "not needed"}
    servers = needed_servers(var, only_postgres) if purpose.current(var) else {}
    stopped = [server.service() for server in servers.values() if not server.ready()]
    with contextlib.ExitStack() as running:
        if stopped:
            supervisor = Supervisor(stopped, status_file=var / "run" / "supervisor.json", log_dir=var / "log")
            with contextlib.suppress(AlreadySupervised):  # the service is starting, with its PostgreSQL
                running.enter_context(supervisor.running(up_within_seconds=UP_WITHIN_SECONDS))
        yield
