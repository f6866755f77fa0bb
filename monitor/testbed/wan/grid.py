"""Run the wide-area test-bed: its emulated network, its servers and its weather.

The directory of a grid has one directory for each kind of server, and these files::

    grid.json       the description of the grid; it exists while all servers run
    state.json      what a restart keeps: the number of the network, and the epoch of its weather
    good.links      link table of the network in good weather: delays by distance, uplinks by site
    weather.links   link table of the current weather; it overrides good.links
    hand.links      link table of the changes that a user sets; it overrides both other tables
    counters.json   the packets forwarded, lost and dropped in each direction
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
from monitor.testbed.wan.services import RunningServers
from reporters.report import parse_rfc3339, rfc3339

GOOD, WEATHER, HAND = "good.links", "weather.links", "hand.links"
TABLES = (GOOD, WEATHER, HAND)
CHANGING = "wan"  # profile of a grid whose network has weather
_STATE = "state.json"
_KEPT_FILES = {_STATE, "lock"}
_RENEW_SECONDS = 3600.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WanOptions:
    """Options of the wide-area test-bed. With *weather* the network changes as *seed* determines."""

    sites: int = 7
    transfer: str = "gridftp"
    batch: str = "slurm"
    weather: bool = True
    seed: int = 1
    compute: str | None = None
    destination: str | None = None

    def roles(self) -> tuple[str, str]:
        """Return the names of the compute site and the destination; see ``LocalGridOptions.roles``.

        Raises:
            ValueError: the grid does not have a given site.
        """
        return LocalGridOptions(sites=self.sites, compute=self.compute, destination=self.destination).roles()


@dataclass
class WanState:
    """The state that a restart keeps: *number* identifies the network, *epoch* is the weather's begin."""

    number: int
    epoch: datetime

    @classmethod
    def load(cls, directory: Path) -> WanState:
        """Return the state of the last start; a new state if the file is missing or cannot be parsed."""
        try:
            document = json.loads((directory / _STATE).read_text(encoding="utf-8"))
            return cls(int(document["number"]), parse_rfc3339(document["epoch"]))
        except (OSError, ValueError, TypeError, KeyError):
            return cls(0, datetime.now(UTC))

    def save(self, directory: Path) -> None:
        document = {"number": self.number, "epoch": rfc3339(self.epoch)}
        write_atomically(directory / _STATE, json.dumps(document, indent=2) + "\n")


class WideAreaGrid:
    """A running grid. Its owner must call ``keep`` about every second."""

    def __init__(self, description: GridDescription, wan: WideAreaNetwork, servers: RunningServers) -> None:
        self.description = description
        self.wan = wan
        self._servers = servers
        self._renew_at = time.monotonic() + _RENEW_SECONDS
        self._logged_messages = 0
        self._step: int | None = None

    def keep(self, now: datetime) -> None:
        """Update the weather to *now*, log new messages of the emulator, and renew proxies that are due.

        Raises:
            NotServing: the emulator or a site has ended.
        """
        self.wan.check()
        for message in self.wan.messages()[self._logged_messages :]:
            self._logged_messages += 1
            log.warning("%s", message)
        if time.monotonic() >= self._renew_at:
            self._renew_at += _RENEW_SECONDS
            self._servers.renew()
        if self.description.profile == CHANGING:
            self._update_weather((now - self.description.epoch).total_seconds())

    def _update_weather(self, seconds: float) -> None:
        step = int(max(0.0, seconds) // STEP_SECONDS)
        if step != self._step:
            self._step = step
            names = (*self.description.sites, HUB)
            lines = weather_lines(self.description.seed, step * STEP_SECONDS, names)
            write_atomically(self.description.directory / WEATHER, format_lines(lines))


@contextlib.contextmanager
def open_grid(directory: Path, options: WanOptions) -> Iterator[WideAreaGrid]:
    """Run a grid in *directory* while the context is open; afterwards only files are left.

    Raises:
        CannotRunHere, AlreadyRunning, NoNetwork, NotServing, TestbedError: the grid cannot run
            (``testbed.errors``).
        ValueError: the options name an unknown site.
    """
    compute, _ = options.roles()
    requirements.check(options.transfer, options.batch)
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    with directory_lock(directory), contextlib.ExitStack() as stack:
        network.kill_leftovers(directory)
        _remove_old_files(directory)
        state, names = WanState.load(directory), site_names(options.sites)
        write_atomically(directory / GOOD, format_lines(good_weather((*names, HUB))))
        tables = [directory / table for table in TABLES]
        wan = stack.enter_context(
            network.emulated(directory, names, tables, preferred=state.number, seed=options.seed)
        )
        WanState(wan.number, state.epoch).save(directory)
        kinds = services.ServerKinds(options.transfer, options.batch, compute)
        servers = stack.enter_context(services.run_servers(directory, wan, kinds))
        description = _describe(directory, options, state, servers)
        write_atomically(directory / FILE_NAME, description.to_json())
        stack.callback((directory / FILE_NAME).unlink, missing_ok=True)
        yield WideAreaGrid(description, wan, servers)


def _describe(
    directory: Path, options: WanOptions, state: WanState, servers: RunningServers
) -> GridDescription:
    compute, destination = options.roles()
    return GridDescription(
        directory=directory,
        sites=site_names(options.sites),
        resources=servers.resources,
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


def _remove_old_files(directory: Path) -> None:
    """Remove the files of an earlier grid except its state; keys and certificates are generated again."""
    for entry in directory.iterdir():
        if entry.name in _KEPT_FILES:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
