"""OpenSSH servers, one per site, and the configuration with which clients reach all of them.

The server of an ordinary user accepts only that user; root's server accepts every user. The directory ``bin``
of a site is first on the PATH of its sessions. The ``ssh``, ``scp`` and ``sftp`` in it use the configuration
that all sites share, so each site reaches the others by name.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import stat
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monitor.operations.supervisor.guard import descendants
from monitor.testbed.errors import TestbedError
from monitor.testbed.middleware.programs import locate
from monitor.testbed.middleware.server_process import free_port, serving
from reporters import process
from reporters.config import ResourceConfig

_PRIVILEGE_SEPARATION = Path("/run/sshd")  # compiled into sshd; only root's needs it
_USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"
_CLIENTS = ("ssh", "scp", "sftp")
# SHLVL: without it bash reads the user's .bashrc, which may change PATH.
_SERVER_CONFIG = """\
ListenAddress {address}
Port {port}
HostKey {root}/host_key
AuthorizedKeysFile {authorized_keys}
PidFile {root}/pid
StrictModes no
UsePAM {pam}
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
UseDNS no
MaxStartups 100
MaxSessions {sessions}
AcceptEnv LC_*
SetEnv PATH={root}/bin:{path} SHLVL=1
Subsystem sftp internal-sftp
"""
_CLIENT_CONFIG = """\
Host {name}
  HostName {address}
  Port {port}
  User {user}
  HostKeyAlias {name}
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
"""


@dataclass(frozen=True)
class SshdOptions:
    """Options of a server.

    Attributes:
        port: TCP port; with 0 a free port is chosen.
        prefix: command that runs the server's command, e.g. ``("ip", "netns", "exec", "iu")``.
        user: account to log in to; empty for the current user.
        path: PATH of sessions, after the ``bin`` of the server.
        sessions: number of sessions that one connection may have.
        authority: whether the server accepts certificates of ``SshClients.authority`` but no plain keys.
        lines: further lines of the server's configuration.
    """

    address: str = "127.0.0.1"
    port: int = 0
    prefix: Sequence[str] = ()
    user: str = ""
    path: str = _USUAL_PATH
    sftp_only: bool = False
    sessions: int = 10
    authority: bool = False
    lines: Sequence[str] = ()


class SshClients:
    """The directory of the clients: one key for all servers, the host keys, and one configuration."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.config_file = directory / "ssh_config"
        self.known_hosts = directory / "known_hosts"
        self.key = make_key(directory / "key")
        self.authority = make_key(directory / "authority")
        self.authorized_keys = directory / "authorized_keys"
        self.authorized_keys.write_bytes(public(self.key).read_bytes())
        self._entries: dict[str, tuple[str, str]] = {}  # of each server: host key, configuration
        self._lock = threading.Lock()

    def certify(self, key: Path, *, valid: str = "-5m:+1h", user: str = "") -> Path:
        """Sign *key* for logins as *user*; *valid* is in ssh-keygen's format. Return the certificate file."""
        name = user or getpass.getuser()
        _keygen("-q", "-s", str(self.authority), "-I", name, "-n", name, "-V", valid, str(public(key)))
        return key.with_name(f"{key.name}-cert.pub")

    def add(self, server: SshServer) -> None:
        """Add *server* to the configuration; a server with the same name is replaced."""
        host_key = public(server.root / "host_key").read_text()
        config = _CLIENT_CONFIG.format(
            name=server.name,
            address=server.address,
            port=server.port,
            user=server.user,
            key=self.key,
            known_hosts=self.known_hosts,
        )
        with self._lock:
            self._entries[server.name] = (f"{server.name} {host_key}", config)
            for file, part in ((self.known_hosts, 0), (self.config_file, 1)):
                _replace(file, "".join(entry[part] for entry in self._entries.values()))

    def resource(
        self, server: SshServer, *, shell: Mapping[str, Any] | None = None, **transfer: Any
    ) -> ResourceConfig:
        """Return *server* as a resource; *shell* and *transfer* are further options of the resource."""
        login = {"kind": "ssh", "host": server.name, "config_file": str(self.config_file), **(shell or {})}
        return ResourceConfig(
            name=server.name,
            site=server.name,
            scratch=str(server.scratch),
            shell=login,
            transfer={"kind": "ssh", **transfer},
            address=server.address,
        )


@dataclass(frozen=True)
class SshServer:
    """A running server; *root* is the directory of its ``bin``, ``scratch`` and ``log``."""

    name: str
    root: Path
    address: str
    port: int
    user: str
    options: SshdOptions = field(default_factory=SshdOptions)

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def log(self) -> Path:
        return self.root / "log"

    def sessions(self) -> list[int]:
        """Return the pids of the processes that serve connections, and of the programs of sessions."""
        return descendants(int((self.root / "pid").read_text()))

    def install(self, program: str, script: str) -> None:
        """Install a script that precedes the real program on the PATH of every session."""
        file = self.root / "bin" / program
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


@contextlib.contextmanager
def sshd(name: str, clients: SshClients, options: SshdOptions | None = None) -> Iterator[SshServer]:
    """Run the server *name* in a subdirectory of *clients* until the context ends. May be called again.

    Raises:
        TestbedError, NotServing, MissingProgram: the server cannot be started.
    """
    options = options or SshdOptions()
    port = options.port or free_port(options.address)
    root = clients.directory / name
    server = SshServer(name, root, options.address, port, options.user or getpass.getuser(), options)
    _prepare(server, clients)
    with _running(server):
        clients.add(server)
        yield server


def _prepare(server: SshServer, clients: SshClients) -> None:
    for directory in ("bin", "scratch"):
        (server.root / directory).mkdir(parents=True, exist_ok=True)
    server.log.unlink(missing_ok=True)
    if not (server.root / "host_key").exists():
        make_key(server.root / "host_key")
    (server.root / "sshd_config").write_text(_configuration(server, clients), encoding="utf-8")
    for program in _CLIENTS:
        server.install(program, f'exec {locate(program)} -F {clients.config_file} "$@"')


def _configuration(server: SshServer, clients: SshClients) -> str:
    options = server.options
    config = _SERVER_CONFIG.format(
        address=server.address,
        port=server.port,
        root=server.root,
        authorized_keys="none" if options.authority else clients.authorized_keys,
        # Without PAM sshd refuses accounts with a locked password; with PAM only root can run it.
        pam="yes" if os.geteuid() == 0 and _locked(server.user) else "no",
        sessions=options.sessions,
        path=options.path,
    )
    lines = [
        *([f"TrustedUserCAKeys {public(clients.authority)}"] if options.authority else []),
        *(["ForceCommand internal-sftp"] if options.sftp_only else []),
        *options.lines,
    ]
    return config + "".join(f"{line}\n" for line in lines)


@contextlib.contextmanager
def _running(server: SshServer) -> Iterator[process.Running]:
    if os.geteuid() == 0:
        _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    # Absolute paths: sshd executes itself again for every connection, in the root directory.
    argv = [locate("sshd"), "-D", "-f", str(server.root / "sshd_config"), "-E", str(server.log)]
    with serving([*server.options.prefix, *argv], ready=lambda: _listens(server), log=server.log) as running:
        yield running


def _listens(server: SshServer) -> bool:
    """Return whether the log says that the server listens; a server in a namespace cannot be reached here."""
    return server.log.exists() and "Server listening on" in server.log.read_text(errors="replace")


def _locked(user: str) -> bool:
    rows = (line.split(":") for line in Path("/etc/shadow").read_text(encoding="utf-8").splitlines())
    return any(row[0] == user and row[1].startswith("!") for row in rows)


def _replace(file: Path, text: str) -> None:
    """Replace *file* atomically, because clients may read it at any time."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)


def make_key(file: Path, passphrase: str = "") -> Path:
    """Generate an Ed25519 key in *file*, with the public key beside it; return *file*."""
    _keygen("-q", "-t", "ed25519", "-N", passphrase, "-C", "gridcast test-bed", "-f", str(file))
    return file


def public(key: Path) -> Path:
    """Return the file with the public key that belongs to the private key in *key*."""
    return key.with_name(f"{key.name}.pub")


def _keygen(*arguments: str) -> None:
    done = subprocess.run([locate("ssh-keygen"), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TestbedError(f"ssh-keygen failed: {done.stderr.strip()}")
