"""Run empty PostgreSQL and Valkey servers during a block, and remove their data afterwards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from monitor.core import env
from monitor.operations.supervisor import Supervisor

from .clean import clean
from .servers import needed_servers

UP_WITHIN_SECONDS = 300.0


@contextlib.contextmanager
def throwaway(var: Path, environment: Mapping[str, str] = os.environ) -> Iterator[dict[str, str]]:
    """Run each server that has no URL in *environment*; at the end, remove its state under *var*.

    Yields the URLs of the servers that run, by variable (DATABASE_URL, REDIS_URL).

    Raises:
        EmbeddedError: a needed server cannot run here.
        NotUp: a server did not come up; the message has the end of its log.
    """
    servers = needed_servers(env.make_var_directory(var), environment, durable=False)
    supervisor = Supervisor(
        [server.service() for server in servers.values()],
        status_file=var / "run" / "supervisor.json",
        log_dir=var / "log",
    )
    try:
        with supervisor.running(up_within_seconds=UP_WITHIN_SECONDS):
            yield {variable: server.url for variable, server in servers.items()}
    finally:
        clean(var)
