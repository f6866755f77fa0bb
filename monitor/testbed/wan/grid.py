"""The wide-area test-bed as a whole: network, servers, weather, description.

In its directory, beside what every kind of server keeps in one of its own::

    grid.json                   appears when all serve
    state.json                  what a restart keeps: the network's number, the epoch of its weather
    good.links  weather.links  hand.links      the network: by distance, by the schedule, by hand
    counters.json               what became of the packets of each direction
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from monitor.testbed.sites.description import FILE_NAME, WAN, GridDescription
from monitor.testbed.sites.files import directory_lock, write_atomically
from monitor.testbed.sites.grid import NO_WEATHER, LocalGridOptions
from monitor.testbed.sites.layout import site_names
from monitor.testbed.wan import network, requirements, services
from monitor.testbed.wan.geography import HUB, good_weather
from monitor.testbed.wan.links import format_lines
from monitor.testbed.wan.network import WideAreaNetwork
from monitor.testbed.wan.schedule import STEP_SECONDS, weather_lines
from monitor.testbed.wan.services import Serving
from reporters.report import parse_rfc3339, rfc3339

GOOD, WEATHER, HAND = "good.links", "weather.links", "hand.links"
TABLES = (GOOD, WEATHER, HAND)
CHANGING = "wan"  # the profile of a grid whose network follows the schedule
_STATE = "state.json"
_KEPT = {_STATE, "lock"}
_RENEW_SECONDS = 3600.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WanOptions:
    """What kind of grid. *weather* lets the network change by itself, as *seed* says."""

    sites: int = 7
    transfer: str = "gridftp"
    batch: str = "slurm"
    weather: bool = True
    seed: int = 1
    compute: str | None = None
    destination: str | None = None

    def roles(self) -> tuple[str, str]:
        """The compute site and the destination. Raises ValueError."""
        return LocalGridOptions(sites=self.sites, compute=self.compute, destination=self.destination).roles()


@dataclass
class WanState:
    """What a restart keeps."""

    number: int
    epoch: datetime

    @classmethod
    def load(cls, directory: Path) -> WanState:
        """What the last start left, or a new state where it left nothing that can be read."""
        try:
            document = json.loads((directory / _STATE).read_text(encoding="utf-8"))
            return cls(int(document["number"]), parse_rfc3339(document["epoch"]))
        except (OSError, ValueError, TypeError, KeyError):
            return cls(0, datetime.now(UTC))

    def save(self, directory: Path) -> None:
        document = {"number": self.number, "epoch": rfc3339(self.epoch)}
        write_atomically(directory / _STATE, json.dumps(document, indent=2) + "\n")


class WideAreaGrid:
    """A grid that is up. Whoever has it calls ``keep`` every second or so."""

    def __init__(self, description: GridDescription, wan: WideAreaNetwork, serving: Serving) -> None:
        self.description = description
        self.wan = wan
        self._serving = serving
        self._renew_at = time.monotonic() + _RENEW_SECONDS
        self._complaints = 0
        self._step: int | None = None

    def keep(self, now: datetime) -> None:
        """Let the weather follow the time, and renew proxies.

        Raises:
            NotServing: something of the network has ended.
        """
        self.wan.check()
        for complaint in self.wan.complaints()[self._complaints :]:
            self._complaints += 1
            log.warning("%s", complaint)
        if time.monotonic() >= self._renew_at:
            self._renew_at += _RENEW_SECONDS
            self._serving.renew()
        if self.description.profile == CHANGING:
            self._follow_weather((now - self.description.epoch).total_seconds())

    def _follow_weather(self, seconds: float) -> None:
        step = int(max(0.0, seconds) // STEP_SECONDS)
        if step != self._step:
            self._step = step
            names = (*self.description.sites, HUB)
            lines = weather_lines(self.description.seed, step * STEP_SECONDS, names)
            write_atomically(self.description.directory / WEATHER, format_lines(lines))


@contextlib.contextmanager
def open_grid(directory: Path, options: WanOptions) -> Iterator[WideAreaGrid]:
    """Serve a grid from *directory* until the context ends; then nothing of it is left but files.

    Raises:
        CannotRunHere, AlreadyRunning, NoNetwork, NotServing, TestbedError: see there.
        ValueError: the options name what there is not.
    """
    compute, destination = options.roles()
    requirements.check(options.transfer, options.batch)
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    with directory_lock(directory), contextlib.ExitStack() as last:
        network.kill_leftovers(directory)
        _empty(directory)
        state, names = WanState.load(directory), site_names(options.sites)
        write_atomically(directory / GOOD, format_lines(good_weather((*names, HUB))))
        tables = [directory / table for table in TABLES]
        wan = last.enter_context(
            network.emulated(directory, names, tables, preferred=state.number, seed=options.seed)
        )
        WanState(wan.number, state.epoch).save(directory)
        chosen = services.Services(options.transfer, options.batch, compute)
        serving = last.enter_context(services.serving(directory, wan, chosen))
        description = GridDescription(
            directory=directory,
            sites=names,
            resources=serving.resources,
            compute=compute,
            destination=destination,
            profile=CHANGING if options.weather else NO_WEATHER,
            seed=options.seed,
            scale=1.0,
            epoch=state.epoch,
            reference_file_bytes=LocalGridOptions.reference_file_bytes,
            reference_result_bytes=LocalGridOptions.reference_result_bytes,
            pid=os.getpid(),
            kind=WAN,
        )
        write_atomically(directory / FILE_NAME, description.to_json())
        last.callback((directory / FILE_NAME).unlink, missing_ok=True)
        yield WideAreaGrid(description, wan, serving)


def _empty(directory: Path) -> None:
    """Remove what an earlier grid has left: keys, certificates and files of sites are made anew."""
    for entry in directory.iterdir():
        if entry.name in _KEPT:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
