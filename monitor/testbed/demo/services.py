"""The demo's services, their order, and how each is checked to be up."""

from __future__ import annotations

import os
import socket
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from monitor import env
from monitor.embedded.servers import needed_servers
from monitor.supervisor import Service
from monitor.testbed.demo import definition

CELERY = [sys.executable, "-m", "celery", "--app=monitor.celery"]
GUNICORN = [
    sys.executable,
    "-m",
    "gunicorn",
    "--workers=2",
    "--worker-class=gthread",
    "--threads=16",  # concurrent reports are stored in one group commit
    "--preload",  # import once, not in each worker
    "--no-control-socket",  # its default is in the home directory
]
WORKER = ["worker", "--without-gossip", "--without-mingle", "--loglevel=INFO"]
# One thread per process for linear algebra: by default its libraries use every core in every worker.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SKIP_CHECKS = {"CELERY_SKIP_CHECKS": "1"}  # the demo command has run them; they load all pages
# Weather with good first minutes, then occasional faults, later a long one.
SEED = 10


@dataclass(frozen=True)
class DemoOptions:
    """Options of the demo."""

    var: Path
    port: int
    weather: str = "teragrid"
    seed: int = SEED
    scheduled: bool = True
    capacity: int = 4
    wan: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def grid_file(self) -> Path:
        return self.var / ("wan" if self.wan else "testbed") / "grid.json"

    @property
    def grid(self) -> definition.DemoGrid:
        return definition.WAN if self.wan else definition.LOCAL


def services(options: DemoOptions) -> list[Service]:
    """Return all services of the demo; servers with a URL in the environment are not started."""
    servers = needed_servers(options.var, os.environ)
    embedded = [server.service() for server in servers.values()]
    names = [service.name for service in embedded]
    return [*embedded, _testbed(options), _prepare(options, names), *_gridcast(options, names)]


def free_port(preferred: int = 8000) -> int:
    """Return the first free port of loopback from *preferred* on."""
    for port in range(preferred, preferred + 100):
        if is_free(port):
            return port
    raise OSError(f"every port from {preferred} to {preferred + 99} on 127.0.0.1 is in use")


def is_free(port: int) -> bool:
    """Whether *port* of loopback can be bound."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _testbed(options: DemoOptions) -> Service:
    directory = options.grid_file.parent
    argv = ["testbed", "up", f"--sites={len(definition.SITES)}", f"--directory={directory}"]
    argv += [f"--weather={options.weather}", f"--seed={options.seed}", *(["--wan"] if options.wan else [])]

    def remove_old_description() -> None:
        options.grid_file.unlink(missing_ok=True)

    return _service(
        options, "testbed", _manage(*argv), before=remove_old_description, ready=options.grid_file.exists
    )


def _prepare(options: DemoOptions, servers: list[str]) -> Service:
    flags = {"--unscheduled": not options.scheduled, "--wan": options.wan}
    argv = _manage("prepare_demo", *(flag for flag, is_given in flags.items() if is_given))
    return _service(options, "prepare", argv, once=True, depends_on=[*servers, "testbed"])


def _gridcast(options: DemoOptions, servers: list[str]) -> list[Service]:
    after = [*servers, "prepare", "testbed"]
    web = [*GUNICORN, "monitor.wsgi", f"--bind=127.0.0.1:{options.port}"]
    beat = [*CELERY, "beat", f"--schedule={options.var / 'run' / 'beat'}", "--pidfile=", "--loglevel=WARNING"]
    control = [*CELERY, *WORKER, "--queues=control", "--concurrency=2", "--hostname=control@%h"]
    reporter = [*CELERY, *WORKER, "--queues=reporter.home", f"--concurrency={options.capacity + 1}"]
    return [
        _service(options, "web", web, depends_on=after, ready=lambda: _answers(f"{options.url}healthz")),
        _service(options, "control", control, depends_on=after),
        _service(options, "reporter", [*reporter, "--hostname=reporter@%h"], depends_on=after),
        _service(options, "beat", beat, depends_on=["control", "reporter"]),
    ]


def _manage(*argv: str) -> list[str]:
    return [sys.executable, str(env.ROOT / "manage.py"), *argv]


def _service(options: DemoOptions, name: str, argv: list[str], **more: object) -> Service:
    environment = {**os.environ, **ONE_THREAD, **SKIP_CHECKS, "GRIDCAST_VAR": str(options.var)}
    return Service(name=name, argv=argv, env=environment, directory=env.ROOT, **more)  # type: ignore[arg-type]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as response:  # noqa: S310 - our own loopback address
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
