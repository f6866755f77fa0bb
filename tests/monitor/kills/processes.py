"""A web server with a durable PostgreSQL of its own, each process of which can be killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psycopg

from monitor.core.env import ROOT
from monitor.operations.embedded.postgres import PostgreSQL
from monitor.operations.serving.address import Address, listen_on_loopback
from monitor.operations.serving.services import GUNICORN, ONE_THREAD
from monitor.operations.supervisor import Service, Supervisor, read_status
from monitor.operations.supervisor.guard import descendants
from tests.processes import is_gone
from tests.waiting import eventually

UP_WITHIN_SECONDS = 300.0
_BACKENDS = """
SELECT pid FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY state = 'active' DESC, pid
"""


class Web:
    """gunicorn and PostgreSQL as in the demo, under a supervisor that restarts what dies."""

    def __init__(self, var: Path, series: int) -> None:
        self.var = var
        self._server = PostgreSQL(var)
        self._series = series
        with listen_on_loopback(18000 + os.getpid() % 1000) as listener:
            self.port = Address.of(listener).port
        self._status_file = var / "run" / "supervisor.json"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        supervisor = Supervisor(self.services(), status_file=self._status_file, log_dir=self.var / "log")
        with supervisor.running(up_within_seconds=UP_WITHIN_SECONDS):
            yield

    def services(self) -> list[Service]:
        return [
            self._server.service(),
            self._service("prepare", self._preparation(), once=True, depends_on=["postgres"]),
            self._web(),
        ]

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def token(self) -> str:
        return (self.var / "token").read_text(encoding="ascii")

    def _preparation(self) -> list[str]:
        """Return the command that sets up the empty depot."""
        module = "tests.monitor.kills.prepare"
        return [sys.executable, "-m", module, str(self._series), str(self.var / "token")]

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **ONE_THREAD,
            "GRIDCAST_VAR": str(self.var),
            "DATABASE_URL": self.url,
            "DJANGO_SETTINGS_MODULE": "monitor.settings",
        }

    def _web(self) -> Service:
        argv = [*GUNICORN, "monitor.wsgi", f"--bind=127.0.0.1:{self.port}", "--log-level=warning"]
        return self._service("web", argv, depends_on=["prepare"])

    def _service(self, name: str, argv: list[str], **more: object) -> Service:
        return Service(name, argv, env=self.environment(), directory=ROOT, **more)  # type: ignore[arg-type]

    def kill(self, what: str, chance: random.Random) -> None:
        """Send SIGKILL to one process of the kind *what*; return when it is gone."""
        self.kill_one_of(what, lambda: KINDS[what](self), chance)

    def kill_one_of(self, what: str, pids: Callable[[], list[int]], chance: random.Random) -> None:
        """Send SIGKILL to one of *pids*, processes of *what*; return when it is gone."""
        killed = eventually(lambda: self._killed(pids(), chance))
        assert killed, f"no process of {what}\n{self.log_tails()}"
        assert eventually(lambda: is_gone(killed))

    def _killed(self, pids: list[int], chance: random.Random) -> int:
        """Kill one of *pids* and return it; 0 if there was none any more."""
        pid = chance.choice([*pids] or [0])
        with contextlib.suppress(ProcessLookupError):
            if pid:
                os.kill(pid, signal.SIGKILL)
                return pid
        return 0

    def main_of(self, service: str) -> list[int]:
        """Return the main process of *service* if it is up."""
        status = read_status(self._status_file)
        known_status = status.services[service] if status else None
        is_up = known_status is not None and known_status.state == "up"
        return [known_status.pid] if known_status and known_status.pid and is_up else []

    def workers(self) -> list[int]:
        return [worker for master in self.main_of("web") for worker in sorted(descendants(master))]

    def backends(self) -> list[int]:
        """Return one backend that serves the web, preferably an active one."""
        try:
            with psycopg.connect(self.url, connect_timeout=10) as connection:
                return [pid for (pid,) in connection.execute(_BACKENDS).fetchall()][:1]
        except psycopg.OperationalError:
            return []

    def log_tails(self) -> str:
        """Return the end of each log."""
        logs = sorted((self.var / "log").glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}" for log in logs)


KINDS: Mapping[str, Callable[[Web], list[int]]] = {
    "a worker of the web": Web.workers,
    "the web": lambda web: web.main_of("web"),
    "a backend of PostgreSQL": Web.backends,
    "PostgreSQL": lambda web: web.main_of("postgres"),
}
