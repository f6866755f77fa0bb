"""``manage.py testbed``: the local grid in the foreground, and faults put into it by hand."""

from __future__ import annotations

import asyncio
import json
import math
import signal
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from monitor import env
from monitor.testbed.sites import Options, TestbedError, load_description, open_sites
from monitor.testbed.sites.files import write_atomically
from monitor.testbed.sites.serving import NO_WEATHER
from monitor.testbed.sites.sources import FAULT_FILE, parse_fault
from monitor.testbed.weather import profiles
from monitor.testbed.weather.conditions import FAULT_KINDS


class Command(BaseCommand):
    help = "Run the local grid: real SSH sites on loopback, with weather."
    requires_system_checks = ()  # the sites need neither the database nor the broker

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        _add_up(actions.add_parser("up", help="serve the sites until SIGINT or SIGTERM"))
        broken = actions.add_parser("break", help="break a site until it is mended")
        broken.add_argument("site")
        broken.add_argument("mechanism", choices=sorted(FAULT_KINDS))
        broken.add_argument(
            "kind", help="; ".join(f"{name}: {', '.join(FAULT_KINDS[name])}" for name in FAULT_KINDS)
        )
        mended = actions.add_parser("mend", help="take back what was broken by hand")
        for action in (broken, mended):
            _add_directory(action)

    def handle(self, *, action: str, directory: Path, **options: Any) -> None:
        actions: dict[str, Callable[..., None]] = {"up": self._up, "break": self._break, "mend": self._mend}
        try:
            actions[action](directory, **options)
        except (TestbedError, ValueError) as error:
            raise CommandError(str(error)) from error

    def _up(self, directory: Path, **options: Any) -> None:
        known = {name: options[name] for name in Options.__dataclass_fields__}
        asyncio.run(self._serve(directory, Options(**known)))

    async def _serve(self, directory: Path, options: Options) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        async with open_sites(directory, options) as grid:
            self.stdout.write(
                f"{len(grid.sites)} sites are up: {', '.join(grid.sites)} (weather: {grid.profile}, "
                f"{grid.scale:g} times as fast). Log in: ssh -F {grid.ssh_config} {grid.compute} COMMAND"
            )
            self.stdout.flush()
            await stop.wait()

    def _break(self, directory: Path, *, site: str, mechanism: str, kind: str, **_: Any) -> None:
        grid = load_description(directory)
        if grid is None:
            raise CommandError(f"no sites are up in {directory}")
        text = json.dumps({"site": site, "mechanism": mechanism, "kind": kind})
        parse_fault(text, grid.sites)
        write_atomically(grid.directory / FAULT_FILE, text)

    def _mend(self, directory: Path, **_: Any) -> None:
        (directory / FAULT_FILE).unlink(missing_ok=True)


def _add_up(parser: ArgumentParser) -> None:
    _add_directory(parser)
    parser.add_argument("--sites", type=int, default=Options.sites)
    parser.add_argument(
        "--weather", dest="profile", default="teragrid", choices=[*profiles.names(), NO_WEATHER]
    )
    parser.add_argument("--seed", type=int, default=Options.seed, help="the same seed gives the same weather")
    parser.add_argument(
        "--scale", type=_positive, default=Options.scale, help="grid seconds in one real second"
    )
    parser.add_argument("--compute", help="the site that computes (default: ncsa)")
    parser.add_argument("--destination", help="the site that gets the results (default: sdsc)")
    for what, default in (("file", Options.reference_file_bytes), ("result", Options.reference_result_bytes)):
        parser.add_argument(
            f"--reference-{what}-bytes",
            type=int,
            default=default,
            help=f"size of the {what} whose transfer takes as long as was drawn (default: {default})",
        )


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise ArgumentTypeError(f"expected a number greater than 0, got {text}")
    return value


def _add_directory(parser: ArgumentParser) -> None:
    parser.add_argument("--directory", type=Path, default=env.var_directory() / "testbed")
