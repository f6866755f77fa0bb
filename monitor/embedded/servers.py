"""Which servers of our own are needed: those that the environment does not name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from monitor.testbed.supervisor import Service

from .postgres import PostgreSQL
from .valkey import Valkey


class Server(Protocol):
    """What another kind of server would have to be."""

    name: str
    url: str

    def prepare(self) -> None: ...

    def service(self) -> Service: ...

    def ready(self) -> bool: ...


KINDS: dict[str, Callable[..., Server]] = {"DATABASE_URL": PostgreSQL, "REDIS_URL": Valkey}


def needed(var: Path, environment: Mapping[str, str], *, durable: bool = True) -> dict[str, Server]:
    """The servers to run, by the variable that names their address; empty where *environment* names both.

    Raises:
        EmbeddedError: one is needed that cannot be had here.
    """
    return {
        variable: kind(var, durable=durable)
        for variable, kind in KINDS.items()
        if not environment.get(variable)
    }
