"""``manage.py testbed``: run the local grid or the wide-area test-bed; inject faults by hand."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from forecasting.commands import positive
from monitor.core import env
from monitor.testbed.sites import LocalGridOptions, TestbedError, load_description, open_sites
from monitor.testbed.sites.files import write_atomically
from monitor.testbed.sites.grid import NO_WEATHER
from monitor.testbed.sites.weather_sources import FAULT_FILE, parse_fault
from monitor.testbed.storage import build
from monitor.testbed.storage import profiles as storage_profiles
from monitor.testbed.storage.mount import mounted
from monitor.testbed.storage.profile import GIB
from monitor.testbed.wan import manual_changes, requirements
from monitor.testbed.wan.geography import HUB
from monitor.testbed.wan.grid import WanOptions, open_grid
from monitor.testbed.weather import profiles
from monitor.testbed.weather.conditions import FAULT_KINDS

_KEEP_SECONDS = 1.0


class Command(BaseCommand):
    help = "Run the local grid: real SSH sites on loopback, with weather; or the wide-area test-bed."
    requires_system_checks = ()  # the sites need neither the database nor the broker

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        _add_up(actions.add_parser("up", help="run the sites until SIGINT or SIGTERM"))
        broken = actions.add_parser("break", help="set a fault at a site until it is mended")
        broken.add_argument("site")
        broken.add_argument("mechanism", choices=sorted(FAULT_KINDS))
        broken.add_argument(
            "kind", help="; ".join(f"{name}: {', '.join(FAULT_KINDS[name])}" for name in FAULT_KINDS)
        )
        link = actions.add_parser(
            "link", help="change one direction of the wide-area network until it is mended"
        )
        _add_link(link)
        links = actions.add_parser("links", help="show the current state of the wide-area network")
        mended = actions.add_parser("mend", help="undo faults and changes set by hand")
        _add_storage(actions.add_parser("storage", help="emulate a storage device in memory"))
        for action in (broken, link, links, mended):
            _add_directory(action)

    def handle(self, *, action: str, **options: Any) -> None:
        actions: dict[str, Callable[..., None]] = {
            "up": self._up,
            "break": self._break,
            "mend": self._mend,
            "link": self._link,
            "links": self._links,
            "storage": self._storage,
        }
        try:
            actions[action](**options)
        except (TestbedError, ValueError) as error:
            raise CommandError(str(error)) from error

    def _up(self, *, wan: bool, directory: Path | None, **options: Any) -> None:
        if wan:
            self._serve_wan(directory or _wan_directory(), _wan_options(options))
        else:
            chosen = {name: options[name] for name in LocalGridOptions.__dataclass_fields__}
            asyncio.run(self._serve(directory or _local_directory(), LocalGridOptions(**chosen)))

    async def _serve(self, directory: Path, options: LocalGridOptions) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        async with open_sites(directory, options) as grid:
            self._say(
                f"{len(grid.sites)} sites are up: {', '.join(grid.sites)} (weather: {grid.profile}, "
                f"{grid.scale:g} times as fast). Log in: ssh -F {grid.ssh_config} {grid.compute} COMMAND"
            )
            await stop.wait()

    def _serve_wan(self, directory: Path, options: WanOptions) -> None:
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        with open_grid(directory, options) as up:
            grid = up.description
            self._say(
                f"{len(grid.sites)} sites are up on an emulated wide-area network: {', '.join(grid.sites)} "
                f"(transfer: {options.transfer}, batch at {grid.compute}: {options.batch}). "
                f"Log in: ssh -F {grid.ssh_config} {grid.compute} COMMAND"
            )
            while not stop.is_set():
                up.keep(datetime.now(UTC))
                stop.wait(_KEEP_SECONDS)

    def _break(self, *, directory: Path | None, site: str, mechanism: str, kind: str, **_: Any) -> None:
        directory = directory or _local_directory()
        grid = load_description(directory)
        if grid is None:
            raise CommandError(f"no sites are up in {directory}")
        text = json.dumps({"site": site, "mechanism": mechanism, "kind": kind})
        parse_fault(text, grid.sites)
        write_atomically(grid.directory / FAULT_FILE, text)

    def _mend(self, *, directory: Path | None, **_: Any) -> None:
        ((directory or _local_directory()) / FAULT_FILE).unlink(missing_ok=True)
        manual_changes.mend(directory or _wan_directory())

    def _link(self, *, directory: Path | None, source: str, target: str, **options: Any) -> None:
        figures = {name: options[name] for name in manual_changes.FIGURES}
        manual_changes.change(directory or _wan_directory(), source, target, figures)

    def _links(self, *, directory: Path | None, **_: Any) -> None:
        for line in manual_changes.report(directory or _wan_directory()):
            self._say(line)

    def _storage(
        self, *, place: Path, storage: str, capacity: float | None, storage_seed: int, **_: Any
    ) -> None:
        chosen = replace(storage_profiles.load(storage), seed=storage_seed)
        if capacity is not None:
            chosen = replace(chosen, capacity_bytes=int(capacity * GIB))
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        with mounted(build.emulator(env.var_directory() / "storage"), place, chosen) as emulator:
            self._say(f"{storage} is mounted at {place}. Its data are lost when this command ends.")
            while not stop.wait(_KEEP_SECONDS):
                if emulator.poll() is not None:
                    raise CommandError(f"the storage at {place} was unmounted, or its emulator has ended")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _wan_options(options: dict[str, Any]) -> WanOptions:
    chosen = {name: options[name] for name in WanOptions.__dataclass_fields__ if name in options}
    return WanOptions(**chosen, weather=options["profile"] != NO_WEATHER)


def _add_up(parser: ArgumentParser) -> None:
    _add_directory(parser)
    parser.add_argument("--sites", type=int, default=LocalGridOptions.sites)
    parser.add_argument(
        "--weather", dest="profile", default="teragrid", choices=[*profiles.names(), NO_WEATHER]
    )
    parser.add_argument(
        "--seed", type=int, default=LocalGridOptions.seed, help="equal seeds give equal weather"
    )
    parser.add_argument(
        "--scale", type=positive, default=LocalGridOptions.scale, help="grid seconds per real second"
    )
    parser.add_argument("--compute", help="the compute site (default: ncsa)")
    parser.add_argument("--destination", help="the site that receives results (default: sdsc)")
    _add_references(parser)
    _add_wan(parser)


def _add_storage(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="storage_action", required=True)
    up = actions.add_parser("up", help="mount a device until SIGINT or SIGTERM")
    # Names of their own: Django's call_command knows the options of a command by name, whatever their action.
    up.add_argument("place", type=Path, metavar="DIR", help="an empty directory")
    up.add_argument("--profile", dest="storage", required=True, choices=storage_profiles.names())
    up.add_argument("--capacity", type=positive, metavar="GIB", help="default: as the profile says")
    up.add_argument("--seed", dest="storage_seed", type=int, default=1, help="equal seeds give equal times")


def _add_references(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--applications",
        nargs="+",
        metavar="SERIES",
        default=LocalGridOptions.applications,
        help="series with the weather of PreCo; * matches any ending (default: preco*)",
    )
    references = {
        "--reference-file-bytes": LocalGridOptions.reference_file_bytes,
        "--reference-result-bytes": LocalGridOptions.reference_result_bytes,
        "--application-file-bytes": LocalGridOptions.application_file_bytes,
        "--application-result-bytes": LocalGridOptions.application_result_bytes,
    }
    for option, default in references.items():
        noun = option.split("-")[3]
        parser.add_argument(
            option,
            type=int,
            default=default,
            help=f"size of the {noun} whose transfer takes the drawn time (default: {default})",
        )


def _add_wan(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("wide-area test-bed (root only)")
    group.add_argument(
        "--wan", action="store_true", help="one network namespace per site, and an emulated network"
    )
    group.add_argument("--transfer", choices=requirements.TRANSFERS, default=WanOptions.transfer)
    group.add_argument("--batch", choices=requirements.BATCHES, default=WanOptions.batch)


def _add_link(parser: ArgumentParser) -> None:
    for end in ("source", "target"):
        parser.add_argument(end, help=f"a site, {HUB!r} for the reporter, or * for all")
    parser.add_argument("--delay-ms", type=float)
    parser.add_argument("--jitter-ms", type=float)
    parser.add_argument("--loss-percent", "--loss", type=float, help="100 cuts the link")
    parser.add_argument("--rate-mbit", type=float, help="0: no limit")


def _add_directory(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--directory", type=Path, help="default: var/testbed, or var/wan for the wide-area test-bed"
    )


def _local_directory() -> Path:
    return env.var_directory() / "testbed"


def _wan_directory() -> Path:
    return env.var_directory() / "wan"
