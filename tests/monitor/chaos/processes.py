"""gridcast's processes with a broker of their own, each of which can be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import redis
from django.db import connection

from monitor.core.env import ROOT
from monitor.operations.embedded.valkey import Valkey
from monitor.operations.serving.services import CELERY, ONE_THREAD, SKIP_CHECKS, WORKER
from monitor.operations.supervisor import Service, Supervisor, read_status
from monitor.operations.supervisor.guard import descendants
from tests.processes import is_gone
from tests.waiting import eventually

UP_WITHIN_SECONDS = 300.0
COMMAND_SECONDS = 300.0
POOL = 3  # processes of the reporter's worker


class Gridcast:
    """Beat, control worker and reporter worker under a supervisor, with the depot of this test.

    A broker that is killed restarts with the data that it saved last, as in the demo.
    """

    def __init__(self, var: Path) -> None:
        self.var = var
        self.broker = Valkey(var)
        self.environment = {
            **os.environ,
            **ONE_THREAD,
            **SKIP_CHECKS,
            "GRIDCAST_VAR": str(var),
            "DATABASE_URL": depot_url(),
            "REDIS_URL": self.broker.url,
            "DJANGO_SETTINGS_MODULE": "tests.monitor.chaos.settings",
        }
        self._status_file = var / "run" / "supervisor.json"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        supervisor = Supervisor(self._services(), status_file=self._status_file, log_dir=self.var / "log")
        with supervisor.running(up_within_seconds=UP_WITHIN_SECONDS):
            yield

    def _services(self) -> list[Service]:
        beat = ["beat", "--pidfile="]
        control = [*WORKER, "--queues=control", "--concurrency=2", "--hostname=control@%h"]
        reporter = [*WORKER, "--queues=reporter.home", f"--concurrency={POOL}", "--hostname=reporter@%h"]
        words = {"control": control, "reporter": reporter, "beat": beat}
        return [self.broker.service(), *(self._celery(name, *argv) for name, argv in words.items())]

    def _celery(self, name: str, *words: str) -> Service:
        argv = [*CELERY, *words, "--loglevel=WARNING"]
        return Service(name, argv, env=self.environment, directory=ROOT, depends_on=["valkey"])

    def kill(self, service: str) -> None:
        """Send SIGKILL to the main process of *service* when it is up; the guard kills its children."""
        pid = self._pid(service)
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: self._up(service) != pid)

    def kill_a_child(self, service: str, which: float) -> None:
        """Send SIGKILL to a process of a worker's pool; *which* (0 to 1) selects it."""
        children = eventually(lambda: self._pool(service))
        assert children, f"{service} has no pool"
        pid = children[int(which * len(children))]
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: is_gone(pid))

    def _pool(self, service: str) -> list[int]:
        return [pid for pid in sorted(descendants(self._pid(service))) if not is_gone(pid)]

    def _pid(self, service: str) -> int:
        pid = eventually(lambda: self._up(service))
        assert pid, f"{service} is not up"
        return pid

    def _up(self, service: str) -> int | None:
        status = read_status(self._status_file)
        service_status = status.services[service] if status else None
        return service_status.pid if service_status and service_status.state == "up" else None

    def flush(self) -> None:
        """Delete all data of the broker."""
        assert eventually(lambda: self._executed("FLUSHALL"))

    def save(self) -> None:
        """Have the broker save its data, which it restarts with."""
        assert eventually(lambda: self._executed("SAVE"))

    def _executed(self, command: str) -> bool:
        with redis.Redis.from_url(self.broker.url.replace("redis+socket://", "unix://")) as client:
            try:
                return bool(client.execute_command(command))
            except redis.ConnectionError:
                return False

    @property
    def spool(self) -> Path:
        return self.var / "spool" / "home"

    def manage(self, *words: str) -> str:
        """Run a command of ``manage.py``; return its output."""
        argv = [sys.executable, "manage.py", *words]
        done = subprocess.run(
            argv,
            check=False,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        return done.stdout

    def log_tails(self) -> str:
        """Return the end of each log."""
        logs = sorted((self.var / "log").glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}" for log in logs)


def depot_url() -> str:
    """Return the DATABASE_URL of the database of this test."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))
