"""Choose the embedded servers to run: the servers whose URL the environment does not set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from monitor.operations.supervisor import Service

from . import timescale
from .postgres import PostgreSQL
from .valkey import Valkey


class EmbeddedServer(Protocol):
    """The interface of an embedded server."""

    name: str
    url: str

    def prepare(self) -> None: ...

    def service(self) -> Service: ...

    def ready(self) -> bool: ...


def needed_servers(
    var: Path, environment: Mapping[str, str], *, durable: bool = True
) -> dict[str, EmbeddedServer]:
    """Return the embedded servers to run, by the variable for their URL (DATABASE_URL, REDIS_URL).

    A server whose URL *environment* sets is left out. With ``durable=False`` a crash of the machine may lose
    the servers' data.

    Raises:
        EmbeddedError: a needed server cannot run here.
    """
    files = environment.get(timescale.VARIABLE)
    makers: dict[str, Callable[[], EmbeddedServer]] = {
        "DATABASE_URL": lambda: PostgreSQL(
            var, durable=durable, timescaledb=Path(files).absolute() if files else None
        ),
        "REDIS_URL": lambda: Valkey(var, durable=durable),
    }
    return {variable: make() for variable, make in makers.items() if not environment.get(variable)}
