"""The services of gridcast: their commands, their order, and the check of each that it is up."""

from __future__ import annotations

import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.core import env
from monitor.operations.embedded.servers import needed_servers
from monitor.operations.serving.address import Address
from monitor.operations.supervisor import Service

CELERY = [sys.executable, "-m", "celery", "--app=monitor.celery"]
GUNICORN = [
    sys.executable,
    "-m",
    "gunicorn",
    "--workers=2",
    "--worker-class=monitor.operations.web_server.worker.BufferedWorker",  # slow clients hold no thread
    "--worker-connections=500",
    "--threads=16",  # concurrent reports are stored in one group commit
    "--preload",  # import once, not in each worker
    "--no-control-socket",  # its default is in the home directory
]
WORKER = ["worker", "--without-gossip", "--without-mingle", "--loglevel=WARNING"]
# One thread per process for linear algebra: by default its libraries use every core in every worker.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# The command that starts the services has checked the settings; Django's other checks load all pages.
SKIP_CHECKS = {"CELERY_SKIP_CHECKS": "1"}
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # http_proxy is not for our own server
# Celery and gunicorn wake every few seconds; while the broker is unavailable, Celery waits up to 30 s.
ASLEEP_SECONDS = 120.0
CAPACITY = 4  # the default of ``Reporter.capacity``


@dataclass(frozen=True)
class Installation:
    """One installation of gridcast.

    Attributes:
        var: the state directory.
        address: address on which the web server listens.
        capacity: number of runs that the home reporter executes at once.
    """

    var: Path
    address: Address
    capacity: int = CAPACITY

    @property
    def status_file(self) -> Path:
        return self.var / "run" / "supervisor.json"

    @property
    def log_directory(self) -> Path:
        return self.var / "log"

    def embedded(self) -> list[Service]:
        """Return PostgreSQL and Valkey; a server with a URL in the environment is not started.

        Raises:
            EmbeddedError: a needed server cannot run here.
        """
        servers = needed_servers(env.make_var_directory(self.var), os.environ)
        return [server.service() for server in servers.values()]

    def gridcast(self, listener: socket.socket, depends_on: Sequence[str]) -> list[Service]:
        """Return the web server, the workers and the scheduler; they start after *depends_on*.

        The web server accepts the connections of *listener*. The supervisor keeps it open: no other program
        can take the address before the web server is up, or while it is restarted.
        """
        web = [*GUNICORN, "monitor.wsgi", f"--bind=fd://{listener.fileno()}"]
        beat = [*CELERY, "beat", "--pidfile=", "--loglevel=WARNING"]
        control = [*CELERY, *WORKER, "--queues=control", "--concurrency=2", "--hostname=control@%h"]
        reporter = [*CELERY, *WORKER, "--queues=reporter.home", f"--concurrency={self.capacity + 1}"]
        checks = {"ready": self._web_answers, "alive": self._web_answers}
        watched = {"depends_on": depends_on, "asleep_seconds": ASLEEP_SECONDS}
        return [
            self.service("web", web, inherited=[listener], **checks, **watched),
            self.service("control", control, **watched),
            self.service("reporter", [*reporter, "--hostname=reporter@%h"], **watched),
            self.service("beat", beat, **{**watched, "depends_on": ["control", "reporter"]}),
        ]

    def command(self, name: str, *argv: str, **options: Any) -> Service:
        """Return a service that runs the management command *argv*; *options* as in ``Service``."""
        return self.service(name, [sys.executable, str(env.ROOT / "manage.py"), *argv], **options)

    def service(self, name: str, argv: Sequence[str], **options: Any) -> Service:
        hosts = dict.fromkeys([*env.hosts(), self.address.local_host])  # ``_web_answers`` asks by this one
        variables = {"GRIDCAST_VAR": str(self.var), "GRIDCAST_HOSTS": ",".join(hosts)}
        environment = {**os.environ, **ONE_THREAD, **SKIP_CHECKS, **variables}
        return Service(name=name, argv=argv, env=environment, directory=env.ROOT, **options)

    def _web_answers(self) -> bool:
        url = f"{self.address.local_url}healthz"
        try:
            with _DIRECT.open(url, timeout=2) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False
