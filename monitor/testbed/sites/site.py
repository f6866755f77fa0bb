"""One site: a listener on its own address, and what answers behind it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import asyncssh

from monitor.testbed.sites.climate import Climate, label_of
from monitor.testbed.sites.credentials import load_key
from monitor.testbed.sites.layout import USER, Layout, SiteLayout
from monitor.testbed.sites.processes import kill_marked
from monitor.testbed.sites.programs import BATCH_LAUNCHER, search_path
from monitor.testbed.sites.session import run_command
from monitor.testbed.sites.storage import Incoming, SiteStorage

GRID_MARK = "SITE_GRID"  # names the grid in the environment of everything that its sites run
_BACKLOG = 128

log = logging.getLogger(__name__)


class Site:
    """Serves one site. *password* opens it too; keys are those of ``authorized_keys`` at the log-in."""

    def __init__(
        self, layout: Layout, place: SiteLayout, climate: Climate, *, port: int, password: str
    ) -> None:
        self.layout = layout
        self.place = place
        self.climate = climate
        self.port = port
        self.password = password
        self.tasks: set[asyncio.Task[None]] = set()
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self._options: asyncssh.SSHServerConnectionOptions | None = None
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None

    @property
    def listens(self) -> bool:
        return self._accepting is not None

    def listen(self) -> None:
        """Claim the address and accept connections. Raises OSError where it cannot be had."""
        if self._socket is None:
            self._socket = _bound_socket(self.place.address, self.port)
        self._socket.listen(_BACKLOG)
        self._accepting = asyncio.create_task(self._accept_all(self._socket))

    async def stop_listening(self) -> None:
        """Refuse connections from now on. The address stays ours: a bound socket that does not listen."""
        if self._accepting is None or self._socket is None:
            return
        await _cancelled([self._accepting])
        self._accepting = None
        self._socket.close()
        self._socket = _bound_socket(self.place.address, self.port)

    async def close(self) -> None:
        """Stop listening, cut every connection, end every session."""
        await self.stop_listening()
        for connection in list(self.connections):
            connection.abort()
        await _cancelled(list(self.tasks))
        if self._socket is not None:
            self._socket.close()

    async def follow_weather(self) -> None:
        """Close or open the door as the weather is now."""
        refused = self.climate.door_fault(self.place.index) == "refused"
        if refused and self.listens:
            await self.stop_listening()
        elif not refused and not self.listens:
            try:
                self.listen()
            except OSError as error:  # somebody took the port meanwhile; the next look tries again
                log.warning("%s cannot listen again: %s", self.place.name, error)

    async def _accept_all(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, (host, _) = await loop.sock_accept(listener)
            except OSError as error:  # too many open files, or the peer has gone already
                log.warning("%s cannot accept a connection: %s", self.place.name, error)
                await asyncio.sleep(0.1)
                continue
            self._track(asyncio.create_task(self._serve(connection, host, loop.time())))

    def _track(self, task: asyncio.Task[None] | None) -> None:
        """Remember *task*, so that it ends before the site does."""
        if task is not None:
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _serve(self, accepted: socket.socket, host: str, accepted_at: float) -> None:
        """Serve one TCP connection until it is closed."""
        if self.climate.door_fault(self.place.index) == "hang":
            await _swallow(accepted)
            return
        sender = self.layout.by_address(host)
        caller = Caller(accepted_at, sender.index if sender else None)
        try:
            connection = await asyncssh.run_server(accepted, options=await self._connection_options(caller))
        except (OSError, asyncssh.Error) as error:  # refused, or left before it had logged in
            log.debug("%s: no log-in from %s: %s", self.place.name, host, error)
            return
        self.connections.add(connection)
        try:
            await connection.wait_closed()
        finally:
            self.connections.discard(connection)

    async def _connection_options(self, caller: Caller) -> asyncssh.SSHServerConnectionOptions:
        if self._options is None:
            self._options = await asyncssh.SSHServerConnectionOptions.construct(
                None,
                server_host_keys=[load_key(self.place.host_key)],
                kex_algs=["curve25519-sha256"],
                encryption_algs=["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
                compression_algs=["none"],
                encoding=None,
                agent_forwarding=False,
                allow_pty=False,
                x11_forwarding=False,
            )
        own: asyncssh.SSHServerConnectionOptions = await asyncssh.SSHServerConnectionOptions.construct(
            self._options,
            server_factory=lambda: _Gate(self),
            process_factory=lambda process: self._session(process, caller),
            sftp_factory=lambda channel: self._storage(channel, caller),
        )
        return own

    async def _session(self, process: asyncssh.SSHServerProcess[bytes], caller: Caller) -> None:
        """One session: hold the first of a run as long as a slow log-in takes, then run what it asks for."""
        self._track(asyncio.current_task())
        if process.command is None:
            process.stderr.write(_NO_SHELL.format(site=self.place.name).encode())
            process.exit(1)
            return
        label = label_of(process.env)
        await self._hold_login(process, caller, label)
        if not process.channel.is_closing():
            await self._run(process, process.command, label)

    async def _run(self, process: asyncssh.SSHServerProcess[bytes], command: str, label: str | None) -> None:
        if label and BATCH_LAUNCHER in command:
            self.climate.run(label).computed_at = self.place.index
        environment = self._environment(process.env, label)
        await run_command(process, command, cwd=str(self.place.home), environment=environment)

    async def _hold_login(
        self, process: asyncssh.SSHServerProcess[bytes], caller: Caller, label: str | None
    ) -> None:
        now = asyncio.get_running_loop().time()
        began = now if caller.sessions else caller.accepted_at
        caller.sessions += 1
        if not self._is_login(caller, label):
            return
        until = began + self.climate.login_seconds(label, self.place.index)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait_closed(), max(0.0, until - now))

    def _is_login(self, caller: Caller, label: str | None) -> bool:
        """Whether a session is the first of its run here; without a label, the first of its connection."""
        if label is None:
            return caller.sessions == 1
        known = self.climate.run(label).logged_in
        first = self.place.index not in known
        known.add(self.place.index)
        return first

    def _storage(self, channel: asyncssh.SSHServerChannel[bytes], caller: Caller) -> SiteStorage:
        label = label_of(channel.get_environment())
        incoming = Incoming(
            link=self.climate.incoming_link(label, sender=caller.site, receiver=self.place.index),
            opened_at=caller.accepted_at,
            disk_fault=self.climate.disk_fault(label, self.place.index),
            reference_bytes=self.climate.terrain.reference_file_bytes,
        )
        return SiteStorage(channel, self.place.home, incoming)

    def _environment(self, sent: Mapping[str, str], label: str | None) -> dict[str, str]:
        """A small clean environment: what the site sets, LC_* from the client, and the weather."""
        weather = self.climate.session_environment(label, self.place.index)
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
            GRID_MARK: str(self.layout.directory),
        }


_NO_SHELL = "{site}: this site runs commands and serves files, but has no interactive shell.\n"


@dataclass
class Caller:
    """Who opened a connection, when (clock of the event loop), and how many sessions it has had."""

    accepted_at: float
    site: int | None
    sessions: int = 0


class _Gate(asyncssh.SSHServer):
    """Who may log in at a site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.open = False
        self.connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn

    def begin_auth(self, username: str) -> bool:
        denied = self.site.climate.door_fault(self.site.place.index) == "denied"
        self.open = username == USER and not denied
        if self.open and self.connection is not None:
            self.connection.set_authorized_keys(str(self.site.place.authorized_keys))
        return True

    def password_auth_supported(self) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:  # noqa: ARG002 - asyncssh calls it
        return self.open and password == self.site.password


def kill_everything(layout: Layout) -> None:
    """Kill what the sites of a grid run, or have left behind when they were killed themselves."""
    kill_marked(f"{GRID_MARK}={layout.directory}")


def _bound_socket(address: str, port: int) -> socket.socket:
    # With the protocol named, asyncio switches Nagle's algorithm off for what is accepted.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address, port))
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


async def _swallow(accepted: socket.socket) -> None:
    """Keep a connection open and say nothing, until the peer closes it."""
    loop = asyncio.get_running_loop()
    with accepted, suppress(OSError):
        while await loop.sock_recv(accepted, 4096):
            pass


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
