"""``manage.py demo``: run all of gridcast over a local grid, in the foreground."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from monitor.operations.embedded import purpose
from monitor.operations.serving.address import Address, listen_on_loopback
from monitor.operations.serving.services import Installation
from monitor.operations.serving.status_lines import StatusLines
from monitor.operations.supervisor import AlreadySupervised, NotUp, Supervisor
from monitor.testbed.demo.services import SEED, DemoOptions, services
from monitor.testbed.demo.session import Session
from monitor.testbed.wan import requirements
from monitor.testbed.wan.grid import WanOptions
from monitor.testbed.weather import profiles

if TYPE_CHECKING:
    from argparse import ArgumentParser

UP_WITHIN_SECONDS = 300.0
MOST_SCALE = 100.0  # beyond it, starting programs takes longer than what the weather slows down
STOPPING = "\nStopping: current runs have 10 s to end (Ctrl-C again: kill them)."
NEEDED = {"ssh": "openssh-client", "scp": "openssh-client", "cc": "gcc and libc6-dev"}


class Command(BaseCommand):
    help = "Monitor a grid of seven sites on this machine; Ctrl-C stops everything."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=0, help="number of runs of all series together")
        parser.add_argument("--exit", action="store_true", help="stop after the rounds")
        parser.add_argument("--json", type=Path, metavar="FILE", help="write a summary of the rounds")
        parser.add_argument("--port", type=int, help="port of the web server (default: first free from 8000)")
        parser.add_argument("--weather", default="teragrid", choices=[*profiles.names(), "none"])
        parser.add_argument("--seed", type=int, default=SEED, help="seed of the weather")
        parser.add_argument("--wan", action="store_true", help="use the wide-area test-bed (root only)")
        usual = DemoOptions.scale
        parser.add_argument(
            "--scale", type=float, default=usual, help=f"grid seconds per second of the weather ({usual:g})"
        )

    def handle(self, *, rounds: int, port: int | None, weather: str, seed: int, **more: Any) -> None:
        _check(rounds, more["exit"], more["json"])
        scale = _scale(more["scale"], is_wan=more["wan"])
        if more["wan"]:
            _check_wan()
        with _listener(port) as listener:
            installation = Installation(settings.VAR_DIR, Address.of(listener))
            scheduled, wan = not rounds, more["wan"]
            options = DemoOptions(installation, listener, weather, seed, scheduled, wan, scale)
            self._run(options, rounds, more)

    def _run(self, options: DemoOptions, rounds: int, more: dict[str, Any]) -> None:
        installation = options.installation
        lines = StatusLines(self._say)
        session = Session(options, self._say, lines.began)
        _claim_state(installation)
        supervisor = Supervisor(
            services(options),
            status_file=installation.status_file,
            log_dir=installation.log_directory,
            on_change=lines.changed,
        )
        for number in (signal.SIGINT, signal.SIGTERM):  # explicit: background jobs of a shell ignore SIGINT
            signal.signal(number, signal.default_int_handler)
        complete = None
        try:
            with supervisor.running(up_within_seconds=UP_WITHIN_SECONDS):
                complete = self._watch(session, rounds, more)
        except (AlreadySupervised, NotUp) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            if rounds and complete is None:
                raise CommandError("interrupted before the rounds were done") from None
        if not more["exit"]:
            self._say("Stopped. The next `make demo` continues where this one ended.")
        if rounds and not complete:
            raise CommandError(
                "runs are unaccounted for, or scratch files are left at a site; see the summary"
            )

    def _watch(self, session: Session, rounds: int, more: dict[str, Any]) -> bool:
        """Run *rounds* rounds; without --exit, then follow runs until interrupted.

        Return whether all runs of the rounds are accounted for.
        """
        try:
            session.say_urls()
            complete = _complete(session, rounds, more["json"])
        except KeyboardInterrupt:
            self._say(STOPPING)
            raise
        if not more["exit"]:
            if rounds:
                self._say("The rounds are done. Everything stays up until Ctrl-C.")
            try:
                session.follow()
            except KeyboardInterrupt:
                self._say(STOPPING)
        return complete

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _check(rounds: int, leave: bool, summary: Path | None) -> None:
    if rounds < 0:
        raise CommandError(f"--rounds: expected a positive number, got {rounds}")
    if (leave or summary) and not rounds:
        raise CommandError("--exit and --json require --rounds N")
    if summary is not None and not summary.absolute().parent.is_dir():
        raise CommandError(f"--json: there is no directory {summary.absolute().parent}")
    if summary is not None and (summary.is_dir() or not os.access(summary.absolute().parent, os.W_OK)):
        raise CommandError(f"--json: cannot write {summary}")
    missing = {package for program, package in NEEDED.items() if shutil.which(program) is None}
    if missing:
        raise CommandError(f"the local grid needs programs of the packages {', '.join(sorted(missing))}")


def _scale(scale: float, *, is_wan: bool) -> float:
    """Return *scale*; schedules and limits of the demo have room from the usual scale on."""
    if is_wan and scale != DemoOptions.scale:
        raise CommandError("--scale: the wide-area test-bed has the speed of its servers, and no weather")
    if not DemoOptions.scale <= scale <= MOST_SCALE:
        raise CommandError(f"--scale: expected {DemoOptions.scale:g} to {MOST_SCALE:g}, got {scale:g}")
    return scale


def _claim_state(installation: Installation) -> None:
    try:
        purpose.claim(installation.var, purpose.DEMO)
    except purpose.OtherPurpose as error:
        raise CommandError(str(error)) from error


def _listener(port: int | None) -> socket.socket:
    """Return a socket that listens on *port* of loopback, or on its first free port from 8000 on."""
    if port is not None and not 0 < port < 65536:
        raise CommandError(f"--port: expected a number from 1 to 65535, got {port}")
    try:
        return listen_on_loopback() if port is None else Address("127.0.0.1", port).listen()
    except OSError as error:
        advice = "" if port is None else "; omit the option to use a free port"
        raise CommandError(f"--port: cannot listen on 127.0.0.1: {error}{advice}") from error


def _check_wan() -> None:
    try:
        requirements.check(WanOptions.transfer, WanOptions.batch)
    except requirements.CannotRunHere as error:
        raise CommandError(f"--wan: {error}") from error


def _complete(session: Session, rounds: int, file: Path | None) -> bool:
    """Run *rounds* rounds and write their summary to *file*; return whether all runs are accounted for."""
    if not rounds:
        return True
    summary = session.run_rounds(rounds)
    if file is not None:
        file.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return bool(summary["complete"])
