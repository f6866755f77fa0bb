"""``manage.py serve``: run all of gridcast for a real grid, in the foreground."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from monitor.core import env
from monitor.models import Reporter, Series
from monitor.models.reporter import HOME
from monitor.operations.embedded import EmbeddedError, purpose
from monitor.operations.serving import systemd
from monitor.operations.serving.address import Address, InvalidAddress
from monitor.operations.serving.services import CAPACITY, Installation
from monitor.operations.serving.status_lines import StatusLines
from monitor.operations.supervisor import AlreadySupervised, NotUp, Service, Supervisor
from monitor.operations.web_server.environment import web_url
from monitor.web.accounts.first_administrator import create_first_administrator

if TYPE_CHECKING:
    from argparse import ArgumentParser

logger = logging.getLogger(__name__)
UP_WITHIN_SECONDS = 86400.0  # a migration of a large depot, or a recovery after a crash, takes its time
MOST_CAPACITY = 500  # processes of the worker
STOPPING = "\nStopping: current runs have 10 s to end (Ctrl-C again: kill them)."
DEFAULT_ADDRESS = "127.0.0.1:8000"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIRST_STEPS = """
No series is defined yet. In another terminal, in this directory, with the same environment:
  {python} manage.py init [HOST ...]             checks the hosts of ~/.ssh/config and writes grid.yaml
  {python} manage.py grid plan grid.yaml         shows what it would define
  {python} manage.py grid apply grid.yaml --run  defines it, and runs each new series once"""


class Command(BaseCommand):
    help = "Run the web server, the workers, the scheduler and the servers that they need; Ctrl-C stops all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--bind",
            default=DEFAULT_ADDRESS,
            metavar="ADDRESS:PORT",
            help=f"address of the web server (default: {DEFAULT_ADDRESS}, to be used behind a TLS proxy)",
        )
        parser.add_argument(
            "--capacity",
            type=int,
            help="number of runs that the home reporter executes at once; kept in the depot "
            f"(default: {CAPACITY})",
        )
        parser.add_argument(
            "--install", action="store_true", help="print a systemd unit for these options, and start nothing"
        )

    def handle(self, *, bind: str, capacity: int | None, install: bool, **_: Any) -> None:
        if capacity is not None and not 0 < capacity <= MOST_CAPACITY:
            raise CommandError(f"--capacity: expected a number from 1 to {MOST_CAPACITY}, got {capacity}")
        installation = Installation(settings.VAR_DIR, _address(bind), capacity or CAPACITY)
        _check_hosts(installation.address)
        if install:
            options = [f"--bind={installation.address}", *([f"--capacity={capacity}"] if capacity else [])]
            self.stdout.write(systemd.unit(options), ending="")
        else:
            with _listener(installation.address) as listener:
                self._serve(installation, listener, capacity)

    def _serve(self, installation: Installation, listener: socket.socket, capacity: int | None) -> None:
        for number in STOP_SIGNALS:  # explicit: background jobs of a shell ignore SIGINT
            signal.signal(number, signal.default_int_handler)
        lines = StatusLines(self._say)
        try:
            purpose.claim(installation.var, purpose.SERVE)
            supervisor = Supervisor(
                _services(installation, listener),
                status_file=installation.status_file,
                log_dir=installation.log_directory,
                on_change=lines.changed,
            )
            with supervisor.running(up_within_seconds=UP_WITHIN_SECONDS):
                _keep_capacity(installation, capacity)
                self._welcome(installation)
                try:
                    supervisor.wait_until_ended()
                except KeyboardInterrupt:
                    self._say(STOPPING)
                    raise
        except (AlreadySupervised, EmbeddedError, NotUp, OSError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self._say("Stopped. The next `make serve` continues with the same state.")

    def _welcome(self, installation: Installation) -> None:
        self._say(f"\ngridcast is up: {_where(installation.address)}")
        self._say(f"  state  {installation.var}\n  logs   {installation.log_directory}")
        create_first_administrator(self._announce)
        if not Series.objects.exists():
            python = sys.executable.removeprefix(f"{Path.cwd()}/")
            self._say(FIRST_STEPS.format(python=python))
        self._say("\nCtrl-C stops everything.")

    def _announce(self, name: str, password: str) -> None:
        self._say(f"  login  {name} / {password}  (the first administrator; this is not shown again)")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except InvalidAddress as error:
        raise CommandError(f"--bind: {error}") from error


def _where(address: Address) -> str:
    """Return the URL that users open; behind a TLS proxy, only ``GRIDCAST_URL`` knows it."""
    if url := web_url():
        return url
    if env.behind_tls():
        return f"{address}, behind a TLS proxy (set GRIDCAST_URL to the https:// URL that users open)"
    return address.browser_url(env.hosts())


def _listener(address: Address) -> socket.socket:
    try:
        return address.listen()
    except OSError as error:
        raise CommandError(f"--bind: cannot listen on {address}: {error.strerror}") from error


def _check_hosts(address: Address) -> None:
    if not address.is_loopback and not env.names_hosts():
        raise CommandError(
            f"--bind: {address} can be reached by other machines: set GRIDCAST_HOSTS to the host names that "
            "users type, separated by commas"
        )
    if not address.is_loopback and not env.decides_on_tls():
        raise CommandError(
            f"--bind: {address} can be reached by other machines: set GRIDCAST_TLS to 1 behind a TLS "
            "proxy, or to 0 if passwords and tokens may travel unencrypted"
        )


def _keep_capacity(installation: Installation, capacity: int | None) -> None:
    """Store *capacity*, if it was given; the ledger claims as many runs of the home reporter at once."""
    if capacity is not None:
        Reporter.objects.update_or_create(name=HOME, defaults={"capacity": capacity})
    stored = Reporter.objects.filter(name=HOME, capacity__gt=installation.capacity).first()
    if stored is not None:
        logger.warning("the reporter %s has the capacity %d: start with --capacity", HOME, stored.capacity)


def _services(installation: Installation, listener: socket.socket) -> list[Service]:
    embedded = installation.embedded()
    servers = [service.name for service in embedded]
    argv = ["migrate", "--skip-checks", "--verbosity=0"]  # they load all pages
    migrate = installation.command("migrate", *argv, once=True, depends_on=servers)
    return [*embedded, migrate, *installation.gridcast(listener, depends_on=[*servers, "migrate"])]
