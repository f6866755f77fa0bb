"""gridcast's processes around a broker of their own, each of which may be killed."""

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

from monitor.embedded.valkey import Valkey
from monitor.env import ROOT
from monitor.supervisor import Service, Supervisor, read_status
from monitor.supervisor.guard import descendants
from monitor.testbed.demo.services import CELERY, ONE_THREAD, WORKER
from tests.processes import is_gone
from tests.waiting import eventually

UP_WITHIN_SECONDS = 60.0
COMMAND_SECONDS = 120.0
POOL = 3  # processes of the reporter's worker


class Gridcast:
    """Beat, control worker and reporter worker under a supervisor, with the depot of this test.

    The broker keeps what it saves (as in a demo): killed, it comes back with that.
    """

    def __init__(self, var: Path) -> None:
        self.var = var
        self.broker = Valkey(var)
        self.environment = {
            **os.environ,
            **ONE_THREAD,
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
        beat = ["beat", f"--schedule={self.var / 'run' / 'beat'}", "--pidfile="]
        control = [*WORKER, "--queues=control", "--concurrency=2", "--hostname=control@%h"]
        reporter = [*WORKER, "--queues=reporter.home", f"--concurrency={POOL}", "--hostname=reporter@%h"]
        words = {"control": control, "reporter": reporter, "beat": beat}
        return [self.broker.service(), *(self._celery(name, *argv) for name, argv in words.items())]

    def _celery(self, name: str, *words: str) -> Service:
        argv = [*CELERY, *words, "--loglevel=WARNING"]
        return Service(name, argv, env=self.environment, directory=ROOT, depends_on=["valkey"])

    def kill(self, service: str) -> None:
        """SIGKILL to the service's own process, when it is up; what it has started goes with it."""
        pid = self._pid(service)
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: self._up(service) != pid)

    def kill_a_child(self, service: str, which: float) -> None:
        """SIGKILL to one of the processes of a worker's pool; *which* of them, from 0 to 1."""
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
        known = status.services[service] if status else None
        return known.pid if known and known.state == "up" else None

    def flush(self) -> None:
        """Have the broker forget everything."""
        assert eventually(lambda: self._told("FLUSHALL"))

    def save(self) -> None:
        """Have the broker keep what there is now: that is what it will come back with."""
        assert eventually(lambda: self._told("SAVE"))

    def _told(self, command: str) -> bool:
        with redis.Redis.from_url(self.broker.url.replace("redis+socket://", "unix://")) as client:
            try:
                return bool(client.execute_command(command))
            except redis.ConnectionError:
                return False

    @property
    def spool(self) -> Path:
        return self.var / "spool" / "home"

    def manage(self, *words: str) -> str:
        """What a command of ``manage.py`` says."""
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

    def said(self) -> str:
        """How each log ends."""
        logs = sorted((self.var / "log").glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}" for log in logs)


def depot_url() -> str:
    """DATABASE_URL of the database of this test."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))
