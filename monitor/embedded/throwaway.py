"""PostgreSQL and Valkey for as long as a block lasts, with nothing in them and nothing kept."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from monitor import env
from monitor.supervisor import Supervisor

from .clean import clean
from .servers import needed_servers

UP_WITHIN_SECONDS = 60.0


@contextlib.contextmanager
def throwaway(var: Path, environment: Mapping[str, str] = os.environ) -> Iterator[dict[str, str]]:
    """Run what *environment* does not name, with its state under *var*, which is removed in the end.

    Yields the variables that name what runs: DATABASE_URL and REDIS_URL, or what of them was missing.

    Raises:
        EmbeddedError: a server is needed that cannot be had here.
        NotUp: one did not come up; says what its log ends with.
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
