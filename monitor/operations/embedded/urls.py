"""Where the servers are: at the URLs of the environment, else at the embedded servers' sockets.

No function here starts a server or needs a running one. The settings import this module at every start,
so it must load fast.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from monitor.core import env

from . import places

POSTGRES_NAME = "gridcast"  # of the embedded server's database and of the role that owns it


def database_url() -> str:
    return env.database_url() or postgres_url(env.var_directory())


def redis_url() -> str:
    return env.redis_url() or valkey_url(env.var_directory())


def depot_directory() -> Path | None:
    """Return a directory on the database's disk; None if the database is external and its disk is unknown."""
    return env.depot_directory() or (None if env.database_url() else env.var_directory() / "postgres")


def postgres_url(var: Path) -> str:
    """Return the DATABASE_URL of the embedded PostgreSQL whose state is under *var*."""
    return f"postgresql://{POSTGRES_NAME}@/{POSTGRES_NAME}?host={quote(str(postgres_sockets(var)))}"


def postgres_sockets(var: Path) -> Path:
    return places.socket_directory(var) / "postgres"


def valkey_url(var: Path) -> str:
    """Return the REDIS_URL (in Celery's form) of the embedded Valkey whose state is under *var*."""
    return f"redis+socket://{valkey_socket(var)}"


def valkey_socket(var: Path) -> Path:
    return places.socket_directory(var) / "valkey.sock"
