"""The web server, the broker, Celery and a durable PostgreSQL."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import sys
from pathlib import Path

from monitor.operations.embedded.valkey import Valkey
from monitor.operations.serving.services import CELERY, SKIP_CHECKS, WORKER
from monitor.operations.supervisor import Service
from tests.monitor.kills.processes import Web

WORKER_OF_WEB, WEB, BROKER = "a worker of the web", "the web", "the broker"
KINDS = (WORKER_OF_WEB, BROKER, WEB, BROKER)
_POOL = 3  # processes of the worker


class Installation(Web):
    """A whole service; a broker that is killed restarts with the data that it saved last.

    One worker of Celery has the roles of all, since each takes seconds of processor time to start.
    """

    def __init__(self, var: Path) -> None:
        super().__init__(var, series=0)
        self._broker = Valkey(var)

    def services(self) -> list[Service]:
        worker = [*WORKER, "--beat", "--queues=control,reporter.home", f"--concurrency={_POOL}"]
        celery = self._service("celery", [*CELERY, *worker], depends_on=["valkey", "prepare"])
        return [self._broker.service(), *super().services(), celery]

    def environment(self) -> dict[str, str]:
        return {
            **super().environment(),
            **SKIP_CHECKS,
            "REDIS_URL": self._broker.url,
            "DJANGO_SETTINGS_MODULE": "tests.monitor.chaos.settings",
        }

    def _preparation(self) -> list[str]:
        return [sys.executable, "-m", "tests.monitor.ends.prepare", str(self.var)]

    @property
    def secrets(self) -> dict[str, str]:
        """Return the tokens, keys and codes by their names in ``prepare``."""
        return dict(json.loads((self.var / "secrets.json").read_text(encoding="ascii")))

    def is_answering(self) -> bool:
        """Return whether the web server accepts connections: it is up before it listens."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=10):
            return True
        return False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self, what: str, chance: random.Random) -> None:
        if what == BROKER:
            self.kill_one_of(what, lambda: self.main_of("valkey"), chance)
        else:
            super().kill(what, chance)
