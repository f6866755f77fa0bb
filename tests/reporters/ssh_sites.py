"""SSH sites on loopback: one thread, a listener for each site, commands run by a real shell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import asyncssh

from reporters.config import ResourceConfig

_CONFIG = """\
Host {name}
  HostName 127.0.0.1
  Port {port}
  User prober
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
"""


@dataclass
class Site:
    """One site: *environments* are those that clients sent, one a session; *login_shell* takes every command
    apart, and runs *start_up* first."""

    name: str
    root: Path
    port: int = 0
    login_shell: str = "/bin/sh"
    start_up: str = ""
    environments: list[dict[str, str]] = field(default_factory=list)
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    logins: int = 0
    running: set[int] = field(default_factory=set)  # the first processes of the sessions' commands

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def path(self) -> str:
        return f"{self.root / 'bin'}:/usr/local/bin:/usr/bin:/bin"

    def install(self, program: str, script: str) -> None:
        """Put a program before the real ones on the site's PATH."""
        file = self.root / "bin" / program
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)


class SshSites:
    """A context in which sites of these *names* answer. *config_file* is for clients, here and there."""

    def __init__(self, *names: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="sites-", dir="/tmp"))
        self.config_file = self.directory / "ssh_config"
        self.known_hosts = self.directory / "known_hosts"
        self.sites = {name: Site(name, self.directory / name) for name in names}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ssh sites")
        self._listeners: list[asyncssh.SSHAcceptor] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self.await_here(self._listen())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.await_here(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self.directory)

    def await_here(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)

    def resource(self, name: str, **shell: Any) -> ResourceConfig:
        return ResourceConfig(
            name=name,
            site=name,
            scratch=str(self.sites[name].scratch),
            shell={"kind": "ssh", "host": name, "config_file": str(self.config_file), **shell},
            transfer={"kind": "ssh"},
        )

    def drop(self, name: str) -> None:
        """Abort every connection of a site."""

        async def cut() -> None:
            for connection in self.sites[name].connections:
                connection.abort()

        self.await_here(cut())

    async def _listen(self) -> None:
        client_key = asyncssh.generate_private_key("ssh-ed25519")
        key_file = self.directory / "key"
        client_key.write_private_key(key_file)
        key_file.chmod(0o600)
        authorized = asyncssh.import_authorized_keys(client_key.export_public_key().decode())
        host_key = asyncssh.generate_private_key("ssh-ed25519")
        public = host_key.export_public_key().decode().strip()
        for site in self.sites.values():
            for directory in ("bin", "home", "scratch"):
                (site.root / directory).mkdir(parents=True)
            listener = await asyncssh.create_server(
                _server_for(site),
                "127.0.0.1",
                0,
                server_host_keys=[host_key],
                authorized_client_keys=authorized,
                process_factory=_processes_for(site),
                sftp_factory=_Storage,
                encoding=None,
            )
            site.port = listener.get_port()
            site.install("scp", f'exec {shutil.which("scp")} -F {self.config_file} "$@"')
            self._listeners.append(listener)
        ports = [site.port for site in self.sites.values()]
        self.known_hosts.write_text("".join(f"[127.0.0.1]:{port} {public}\n" for port in ports))
        self.config_file.write_text(
            "".join(
                _CONFIG.format(name=site.name, port=site.port, key=key_file, known_hosts=self.known_hosts)
                for site in self.sites.values()
            )
        )

    async def _close(self) -> None:
        for site in self.sites.values():
            for connection in site.connections:
                connection.abort()
            for session in site.running:
                _kill_session(session)
        for listener in self._listeners:
            listener.close()
            await listener.wait_closed()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if others:
            await asyncio.wait(others, timeout=60)


class _Storage(asyncssh.SFTPServer):
    def exit(self) -> None:
        self.channel.exit(0)  # scp takes an end without a status for a failure


def _server_for(site: Site) -> type[asyncssh.SSHServer]:
    class Server(asyncssh.SSHServer):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            site.connections.append(conn)

        def auth_completed(self) -> None:
            site.logins += 1

    return Server


def _processes_for(site: Site) -> Any:
    async def run(process: asyncssh.SSHServerProcess[bytes]) -> None:
        sent = dict(process.env)
        site.environments.append(sent)
        child = await asyncio.create_subprocess_exec(
            site.login_shell,
            "-c",
            f"{site.start_up}\n{process.command or ''}",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=site.root / "home",
            env={"HOME": str(site.root / "home"), "PATH": site.path, "LANG": "C.UTF-8", **sent},
            start_new_session=True,
        )
        site.running.add(child.pid)
        feeding = asyncio.create_task(_pass_on(process.stdin, child.stdin))
        try:
            await asyncio.gather(
                _pass_on(child.stdout, process.stdout), _pass_on(child.stderr, process.stderr)
            )
            status = await child.wait()
        finally:
            site.running.discard(child.pid)
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            child._transport.close()  # type: ignore[attr-defined]  # unread channels are closed by no other code
        if status < 0:
            process.exit_with_signal(signal.Signals(-status).name[3:])
        else:
            process.exit(status)

    return run


async def _pass_on(source: Any, target: Any) -> None:
    """Until the end of *source*. As at any SSH server, a client that goes away means the end of the input."""
    with contextlib.suppress(ConnectionError, asyncssh.Error):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    if isinstance(target, asyncio.StreamWriter):
        target.close()


def _kill_session(session: int) -> None:
    """Kill every process of a session, whatever its process group."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                os.kill(int(entry.name), signal.SIGKILL)


def processes_naming(text: str) -> list[int]:
    """Return the processes, without zombies, whose command line contains *text*."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in command:
                pids.append(int(entry.name))
    return pids
