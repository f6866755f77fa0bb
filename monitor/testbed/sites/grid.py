"""Run the local grid: prepare its directory, open its sites; for tests, run them in a thread."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from monitor.testbed.errors import NoAddress
from monitor.testbed.sites.credentials import prepare_credentials
from monitor.testbed.sites.description import FILE_NAME, GridDescription
from monitor.testbed.sites.effects import Terrain
from monitor.testbed.sites.files import directory_lock, write_atomically
from monitor.testbed.sites.layout import Layout, site_names
from monitor.testbed.sites.programs import BATCH_LAUNCHER, prepare_programs
from monitor.testbed.sites.site import SshSite, kill_everything
from monitor.testbed.sites.site_weather import SiteWeather
from monitor.testbed.sites.state import GridState, load_state, random_port, save_state, with_passwords
from monitor.testbed.sites.weather_sources import (
    FAULT_FILE,
    DrawnWeather,
    NoWeather,
    WeatherSource,
    WithManualFault,
)
from monitor.testbed.weather.generator import Weather
from reporters.config import ResourceConfig

NO_WEATHER = "none"
_PORTS_TRIED = 100
_CHECK_SECONDS = 0.1  # interval of checks whether the weather has changed
_STOP_SECONDS = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalGridOptions:
    """Options of the local grid. *compute* and *destination* are names of sites; ``roles`` has the defaults.

    The weather generator draws a time for each transfer at random. A file of *reference_file_bytes*, or a
    result of *reference_result_bytes*, takes the drawn time; other sizes take proportionally less or more.

    A series belongs to an application if its name matches one of the patterns *applications* (``*`` matches
    any ending). Runs of such series meet the weather of PreCo, and their reference sizes are
    *application_file_bytes* and *application_result_bytes*.
    """

    sites: int = 7
    profile: str = NO_WEATHER
    seed: int = 1
    scale: float = 20.0
    compute: str | None = None
    destination: str | None = None
    reference_file_bytes: int = 1_000_000
    reference_result_bytes: int = 5_000_000
    applications: tuple[str, ...] = ("preco*",)
    application_file_bytes: int = 1_000_448  # 61 projections of 64 x 64
    application_result_bytes: int = 1_049_600  # a volume of 64 x 64 x 64

    def roles(self) -> tuple[str, str]:
        """Return the compute site and the destination.

        The default is NCSA and SDSC; in a grid without these sites it is the last two sites.

        Raises:
            ValueError: the grid does not have a given site.
        """
        names = site_names(self.sites)
        preferred = ("ncsa", "sdsc") if "sdsc" in names else (names[max(0, len(names) - 2)], names[-1])
        roles = (self.compute or preferred[0], self.destination or preferred[1])
        for name in roles:
            if name not in names:
                raise ValueError(f"there is no site {name!r}; the grid has {', '.join(names)}")
        return roles


@asynccontextmanager
async def open_sites(
    directory: Path, options: LocalGridOptions, weather: WeatherSource | None = None
) -> AsyncIterator[GridDescription]:
    """Run a grid in *directory* while the context is open; *weather* replaces the weather of *options*.

    Raises:
        AlreadyRunning, NoAddress, MissingProgram, DamagedState: the grid cannot run (``testbed.errors``).
        ValueError: the options name an unknown site.
    """
    logging.getLogger("asyncssh").setLevel(logging.WARNING)  # it logs every session
    layout = Layout.of(directory, options.sites)
    compute, destination = options.roles()
    layout.directory.mkdir(parents=True, exist_ok=True)
    with directory_lock(layout.directory):
        kill_everything(layout)
        (layout.directory / FILE_NAME).unlink(missing_ok=True)
        state = _prepare(layout)
        description = _describe(layout, state, options, compute, destination)
        source = WithManualFault(
            weather or _weather_of(options, state), layout.directory / FAULT_FILE, layout.names
        )
        async with _listening(layout, state, SiteWeather(source, _terrain(description, options))) as port:
            if port != state.port:
                state = GridState(port, state.epoch, state.passwords)
            save_state(layout.directory, state)
            prepare_credentials(layout, port)
            write_atomically(layout.directory / FILE_NAME, description.to_json())
            try:
                yield description
            finally:
                (layout.directory / FILE_NAME).unlink(missing_ok=True)


@contextmanager
def running_sites(
    directory: Path,
    count: int = 7,
    *,
    weather: WeatherSource | None = None,
    options: LocalGridOptions | None = None,
) -> Iterator[GridDescription]:
    """Run *count* sites in a thread of this process while the context is open; see ``open_sites``.

    Without *weather* and *options*, there is no weather. If *options* are given, *count* is ignored. Several
    grids can run concurrently.
    """
    chosen = options or LocalGridOptions(sites=count)
    ready: Future[tuple[GridDescription, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    thread = threading.Thread(target=_serve_in_thread, args=(directory, chosen, weather, ready))
    thread.start()
    try:
        description, loop, stop = ready.result()
        try:
            yield description
        finally:
            loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join()


def _serve_in_thread(
    directory: Path,
    options: LocalGridOptions,
    weather: WeatherSource | None,
    ready: Future[tuple[GridDescription, asyncio.AbstractEventLoop, asyncio.Event]],
) -> None:
    async def serve() -> None:
        stop = asyncio.Event()
        async with open_sites(directory, options, weather) as description:
            ready.set_result((description, asyncio.get_running_loop(), stop))
            await stop.wait()

    try:
        asyncio.run(serve())
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)


def _prepare(layout: Layout) -> GridState:
    """Create missing directories and programs; return the state of the last start, or a new state."""
    for site in layout.sites:
        shutil.rmtree(site.paced, ignore_errors=True)
        for path in (site.root, site.home, site.scratch, site.paced):
            path.mkdir(parents=True, exist_ok=True)
    prepare_programs(layout)
    return with_passwords(load_state(layout.directory), layout.names)


def _weather_of(options: LocalGridOptions, state: GridState) -> WeatherSource:
    if options.profile == NO_WEATHER:
        return NoWeather()
    weather = Weather(options.profile, options.seed, options.sites)
    return DrawnWeather(lru_cache(maxsize=256)(weather.at), state.epoch, options.scale)


def _describe(
    layout: Layout, state: GridState, options: LocalGridOptions, compute: str, destination: str
) -> GridDescription:
    resources = {
        site.name: ResourceConfig(  # noqa: S604 - describes access to a site, runs no program
            name=site.name,
            site=site.name,
            scratch=str(site.scratch),
            shell={"kind": "ssh", "host": site.name, "config_file": str(layout.ssh_config)},
            transfer={"kind": "ssh", "host": site.name},
            batch={"kind": "fork", "launcher": [BATCH_LAUNCHER]},
            address=site.address,
        )
        for site in layout.sites
    }
    return GridDescription(
        directory=layout.directory,
        sites=layout.names,
        resources=resources,
        compute=compute,
        destination=destination,
        profile=options.profile,
        seed=options.seed,
        scale=options.scale,
        epoch=state.epoch,
        reference_file_bytes=options.reference_file_bytes,
        reference_result_bytes=options.reference_result_bytes,
        pid=os.getpid(),
        applications=tuple(options.applications),
    )


def _terrain(description: GridDescription, options: LocalGridOptions) -> Terrain:
    return Terrain(
        scale=description.scale,
        reference_file_bytes=description.reference_file_bytes,
        reference_result_bytes=description.reference_result_bytes,
        sources=tuple(description.sites.index(name) for name in description.sources),
        applications=tuple(options.applications),
        application_file_bytes=options.application_file_bytes,
        application_result_bytes=options.application_result_bytes,
    )


@asynccontextmanager
async def _listening(layout: Layout, state: GridState, weather: SiteWeather) -> AsyncIterator[int]:
    """Run all sites on one port and yield the port.

    It is the port of the last start, or another port if that port is in use.
    """
    # Before the first connection; ``open_sites`` writes the final port afterwards.
    prepare_credentials(layout, state.port)
    sites = await _listen_on_one_port(layout, state, weather)
    for site in sites:
        site.write_weather()
    tasks = [asyncio.create_task(_watch_weather(sites))]
    tasks += [asyncio.create_task(site.run_cron()) for site in sites]
    try:
        yield sites[0].listener.port
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.wait_for(asyncio.gather(*(site.close() for site in sites)), _STOP_SECONDS)
        kill_everything(layout)


async def _listen_on_one_port(layout: Layout, state: GridState, weather: SiteWeather) -> list[SshSite]:
    port = state.port
    for _ in range(_PORTS_TRIED):
        sites = [
            SshSite(layout, place, weather, port=port, password=state.passwords[place.name])
            for place in layout.sites
        ]
        try:
            for site in sites:
                site.listener.open()
        except OSError as error:
            log.warning("the sites cannot listen on port %d: %s", port, error)
            await asyncio.gather(*(site.close() for site in sites))
            failure, port = error, random_port()
        else:
            return sites
    raise NoAddress(f"cannot listen on {layout.sites[0].address} and up: {failure}")


async def _watch_weather(sites: list[SshSite]) -> None:
    while True:
        for site in sites:
            site.write_weather()
            await site.follow_login_fault()
        await asyncio.sleep(_CHECK_SECONDS)
