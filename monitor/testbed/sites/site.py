"""One site of the local grid: an SSH server whose speed and faults follow the weather."""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import asyncssh

from monitor.testbed.sites.authentication import SiteAuthentication
from monitor.testbed.sites.credentials import load_key
from monitor.testbed.sites.cron import SiteCron
from monitor.testbed.sites.files import write_atomically
from monitor.testbed.sites.inflow import Inflow
from monitor.testbed.sites.layout import USER, Layout, SiteLayout
from monitor.testbed.sites.listener import SiteListener, acknowledge_at_once, swallow
from monitor.testbed.sites.processes import kill_with_variable
from monitor.testbed.sites.programs import LAUNCHER_MECHANISMS, RUN_VARIABLE, search_path
from monitor.testbed.sites.run_clock import paced_mechanism, planned_seconds
from monitor.testbed.sites.session import run_command
from monitor.testbed.sites.site_weather import SiteWeather, label_of
from monitor.testbed.sites.storage import SiteStorage

GRID_VARIABLE = "SITE_GRID"  # has the grid's directory in all processes of its sites

_NO_SHELL = "{site}: this site runs commands and serves files, but has no interactive shell.\n"

log = logging.getLogger(__name__)


@dataclass
class Caller:
    """The client of a connection.

    Attributes:
        accepted_at: time of the connection by the clock of the event loop.
        site: index of the site that connects; None if the client is outside the grid.
        sessions: number of sessions that the connection has had.
    """

    accepted_at: float
    site: int | None
    sessions: int = 0


class SshSite:
    """Serves one site of a grid at *port* of the site's address; users log in with a key or *password*."""

    def __init__(
        self, layout: Layout, place: SiteLayout, weather: SiteWeather, *, port: int, password: str
    ) -> None:
        self.layout = layout
        self.place = place
        self.weather = weather
        self.password = password
        self.listener = SiteListener(place.address, port, self._accept)
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._options: asyncssh.SSHServerConnectionOptions | None = None
        self._written_weather = ""

    async def close(self) -> None:
        """Stop listening, abort every connection, end every session."""
        await self.listener.close()
        for connection in list(self._connections):
            connection.abort()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run_cron(self) -> None:
        """Run the commands of the site's crontab until cancelled."""

        def environment() -> dict[str, str]:
            now = asyncio.get_running_loop().time()
            seconds = self.weather.program_seconds(None, self.place.index, now)
            return self._environment({}, None, seconds)

        await SiteCron(self.place.crontab, self.place.home, environment).run()

    async def follow_login_fault(self) -> None:
        """Stop listening while the weather has the login fault "refused" here, and resume afterwards."""
        refused = self._login_fault() == "refused"
        if refused and self.listener.listens:
            await self.listener.refuse()
        elif not refused and not self.listener.listens:
            try:
                self.listener.open()
            except OSError as error:  # the port was taken meanwhile; retried at the next call
                log.warning("%s cannot listen again: %s", self.place.name, error)

    def write_weather(self) -> None:
        """Write the current weather for the programs of a reporter at the site, if it has changed."""
        variables = self.weather.host_environment(self.place.index)
        text = "".join(f"{name}={value}\n" for name, value in {**variables, "SITE_PACED": ""}.items())
        if text == self._written_weather:
            return
        try:
            write_atomically(self.place.weather, text)
        except OSError as error:  # tried again at the next call
            log.warning("%s: %s", self.place.name, error)
        else:
            self._written_weather = text

    def _login_fault(self) -> str | None:
        return self.weather.login_fault(self.place.index)

    def _track(self, task: asyncio.Task[None] | None) -> None:
        """Add *task* to the tasks that ``close`` cancels."""
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _accept(self, accepted: socket.socket, host: str) -> None:
        sender = self.layout.by_address(host)
        caller = Caller(asyncio.get_running_loop().time(), sender.index if sender else None)
        serving = swallow(accepted) if self._login_fault() == "hang" else self._serve(accepted, caller)
        self._track(asyncio.create_task(serving))

    async def _serve(self, accepted: socket.socket, caller: Caller) -> None:
        """Serve one TCP connection until it is closed."""
        acknowledging = asyncio.create_task(acknowledge_at_once(accepted))
        try:
            options = await self._connection_options(caller)
            connection = await asyncssh.run_server(accepted, options=options)
        except (OSError, asyncssh.Error) as error:  # refused, or disconnected before the login
            log.debug("%s: no login: %s", self.place.name, error)
            return
        finally:
            acknowledging.cancel()
        self._connections.add(connection)
        try:
            await connection.wait_closed()
        finally:
            self._connections.discard(connection)

    async def _connection_options(self, caller: Caller) -> asyncssh.SSHServerConnectionOptions:
        if self._options is None:
            self._options = await _common_options(load_key(self.place.host_key))
        own: asyncssh.SSHServerConnectionOptions = await asyncssh.SSHServerConnectionOptions.construct(
            self._options,
            server_factory=lambda: SiteAuthentication(
                self.place.authorized_keys, self.password, lambda: self._login_fault() == "denied"
            ),
            process_factory=lambda process: self._session(process, caller),
            sftp_factory=lambda channel: self._storage(channel, caller),
        )
        return own

    async def _session(self, process: asyncssh.SSHServerProcess[bytes], caller: Caller) -> None:
        """Delay the first session of a run by the login time, then run its command."""
        self._track(asyncio.current_task())
        if process.command is None:
            process.stderr.write(_NO_SHELL.format(site=self.place.name).encode())
            process.exit(1)
            return
        label = label_of(process.env)
        await self._delay_login(process, caller, label)
        if process.channel.is_closing():
            return
        await self._run(process, process.command, caller, label)

    async def _run(
        self, process: asyncssh.SSHServerProcess[bytes], command: str, caller: Caller, label: str | None
    ) -> None:
        # Sessions from other sites transfer files (scp -O, rsync), so the link paces their input too.
        inflow = None if caller.site is None else self._inflow(process.channel, label, caller)
        loop = asyncio.get_running_loop()
        began, paced_file = loop.time(), self.place.paced / uuid.uuid4().hex
        seconds = self.weather.program_seconds(label, self.place.index, began)
        environment = {**self._environment(process.env, label, seconds), "SITE_PACED": str(paced_file)}
        clock = self.weather.run(label)
        clock.paced_files[paced_file] = self.place.index
        try:
            home = str(self.place.home)
            await run_command(process, command, cwd=home, environment=environment, inflow=inflow)
        finally:
            del clock.paced_files[paced_file]
            mechanism = paced_mechanism(paced_file)
            paced_file.unlink(missing_ok=True)
            if mechanism:
                if mechanism in LAUNCHER_MECHANISMS:
                    clock.computed_at = self.place.index
                planned = began + planned_seconds(mechanism, seconds)
                self.weather.step_ended(label, mechanism, began=began, planned=planned, now=loop.time())

    async def _delay_login(
        self, process: asyncssh.SSHServerProcess[bytes], caller: Caller, label: str | None
    ) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        began = now if caller.sessions else caller.accepted_at
        caller.sessions += 1
        if not self._is_login(caller, label):
            return
        until = began + self.weather.login_seconds(label, self.place.index)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait_closed(), max(0.0, until - now))
        self.weather.step_ended(label, "login", began=began, planned=until, now=loop.time())

    def _is_login(self, caller: Caller, label: str | None) -> bool:
        """Return whether a session is the first of the run *label* at this site.

        Without a label, return whether the session is the first of *caller*.
        """
        if label is None:
            return caller.sessions == 1
        sites = self.weather.run(label).logged_in
        is_first = self.place.index not in sites
        sites.add(self.place.index)
        return is_first

    def _storage(self, channel: asyncssh.SSHServerChannel[bytes], caller: Caller) -> SiteStorage:
        label = label_of(channel.get_environment())
        return SiteStorage(
            channel,
            home=self.place.home,
            inflow=self._inflow(channel, label, caller),
            disk_fault=self.weather.disk_fault(label, self.place.index),
        )

    def _inflow(self, channel: asyncssh.SSHServerChannel[bytes], label: str | None, caller: Caller) -> Inflow:
        loop, began = asyncio.get_running_loop(), caller.accepted_at
        link = self.weather.incoming_link(label, sender=caller.site, receiver=self.place.index)
        return Inflow(
            channel.get_connection(),
            link,
            opened_at=self.weather.link_opened_at(label, link.mechanism, began),
            reference_bytes=self.weather.reference_file_bytes(label),
            on_end=lambda planned: self.weather.step_ended(
                label, link.mechanism, began=began, planned=planned, now=loop.time()
            ),
        )

    def _environment(
        self, sent: Mapping[str, str], label: str | None, seconds: Mapping[str, float]
    ) -> dict[str, str]:
        """Return the environment of a session.

        It has the variables LC_* that the client has *sent*, the weather, and the variables of the site.
        """
        weather = self.weather.session_environment(label, self.place.index, seconds)
        with_compiler = weather.get("SITE_COMPILE_FAULT") != "missing"
        return {
            **{name: value for name, value in sent.items() if name.startswith("LC_")},
            **weather,
            "HOME": str(self.place.home),
            "LOGNAME": USER,
            "USER": USER,
            "SHELL": "/bin/sh",
            "PATH": search_path(self.layout, self.place, with_compiler=with_compiler),
            "SITE_NAME": self.place.name,
            RUN_VARIABLE: label or "",
            GRID_VARIABLE: str(self.layout.directory),
        }


async def _common_options(host_key: asyncssh.SSHKey) -> asyncssh.SSHServerConnectionOptions:
    """Return the options that all connections of a site share."""
    options: asyncssh.SSHServerConnectionOptions = await asyncssh.SSHServerConnectionOptions.construct(
        None,
        server_host_keys=[host_key],
        kex_algs=["curve25519-sha256"],
        encryption_algs=[
            "aes128-gcm@openssh.com",
            "aes256-gcm@openssh.com",
        ],  # the fastest on common hardware
        compression_algs=["none"],
        encoding=None,
        agent_forwarding=False,
        allow_pty=False,
        x11_forwarding=False,
    )
    return options


def kill_everything(layout: Layout) -> None:
    """Kill all processes of a grid's sites, among them the processes that a killed grid has left."""
    kill_with_variable(f"{GRID_VARIABLE}={layout.directory}")
