"""OpenSSH's own server, one a site, and what clients need to reach all of them.

An ordinary user's server lets in that user alone; root's anybody. Every session finds the programs in the
site's ``bin`` before the real ones; there are ``ssh``, ``scp`` and ``sftp``, which read the configuration
that all sites share, so that a site reaches the others by their names as the reporter does.
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

from monitor.supervisor.guard import descendants
from monitor.testbed.errors import TestbedError
from monitor.testbed.middleware.programs import locate
from monitor.testbed.middleware.server_process import free_port, serving
from reporters import process
from reporters.config import ResourceConfig

_PRIVILEGE_SEPARATION = Path("/run/sshd")  # compiled into sshd; only root's needs it
_USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"
_CLIENTS = ("ssh", "scp", "sftp")
# SHLVL: else bash takes a session for somebody's first shell and reads his .bashrc, with a PATH of its own.
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
    """How a server is to be. Port 0 is one that the kernel chooses.

    *prefix* runs the server, as in ``("ip", "netns", "exec", "iu")``; *user* is who logs in, by default who
    starts it. With *authority* it lets in whoever has a certificate of ``SshClients.authority``, and no plain
    key. *lines* are more lines of its configuration.
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
    """A directory with what clients need: one key for all servers, their host keys, a configuration."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.config_file = directory / "ssh_config"
        self.known_hosts = directory / "known_hosts"
        self.key = make_key(directory / "key")
        self.authority = make_key(directory / "authority")
        self.authorized_keys = directory / "authorized_keys"
        self.authorized_keys.write_bytes(public(self.key).read_bytes())
        self._known: dict[str, tuple[str, str]] = {}  # of each server: its host key, its configuration
        self._learning = threading.Lock()

    def certify(self, key: Path, *, valid: str = "-5m:+1h", user: str = "") -> Path:
        """Have the authority sign *key* for logging in as *user*, *valid* as ssh-keygen has it."""
        who = user or getpass.getuser()
        _keygen("-q", "-s", str(self.authority), "-I", who, "-n", who, "-V", valid, str(public(key)))
        return key.with_name(f"{key.name}-cert.pub")

    def learn(self, server: SshServer) -> None:
        """Know *server* by its name, and no other of that name any more."""
        host_key = public(server.root / "host_key").read_text()
        config = _CLIENT_CONFIG.format(
            name=server.name,
            address=server.address,
            port=server.port,
            user=server.user,
            key=self.key,
            known_hosts=self.known_hosts,
        )
        with self._learning:
            self._known[server.name] = (f"{server.name} {host_key}", config)
            for file, part in ((self.known_hosts, 0), (self.config_file, 1)):
                _replace(file, "".join(known[part] for known in self._known.values()))

    def resource(
        self, server: SshServer, *, shell: Mapping[str, Any] | None = None, **transfer: Any
    ) -> ResourceConfig:
        """*server* as a resource, with more options of its *shell* and its *transfer*."""
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
    """A server that runs: *root* has its ``bin``, ``scratch`` and ``log``."""

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
        """The processes that serve connections, and what runs at their other end."""
        return descendants(int((self.root / "pid").read_text()))

    def install(self, program: str, script: str) -> None:
        """Put a program before the real ones on the PATH of every session."""
        file = self.root / "bin" / program
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


@contextlib.contextmanager
def sshd(name: str, clients: SshClients, options: SshdOptions | None = None) -> Iterator[SshServer]:
    """A server called *name* in a directory of *clients*, until the context ends. It may come again.

    Raises:
        TestbedError, NotServing, MissingProgram: it cannot be started.
    """
    options = options or SshdOptions()
    port = options.port or free_port(options.address)
    root = clients.directory / name
    server = SshServer(name, root, options.address, port, options.user or getpass.getuser(), options)
    _prepare(server, clients)
    with _running(server):
        clients.learn(server)
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
        # Without PAM sshd refuses accounts whose password is locked, with it only root can run sshd.
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
    # Absolute paths: for every connection sshd runs itself anew, in the root directory.
    argv = [locate("sshd"), "-D", "-f", str(server.root / "sshd_config"), "-E", str(server.log)]
    with serving([*server.options.prefix, *argv], ready=lambda: _listens(server), log=server.log) as running:
        yield running


def _listens(server: SshServer) -> bool:
    """By its own word: in a network namespace nobody else can tell."""
    return server.log.exists() and "Server listening on" in server.log.read_text(errors="replace")


def _locked(user: str) -> bool:
    rows = (line.split(":") for line in Path("/etc/shadow").read_text(encoding="utf-8").splitlines())
    return any(row[0] == user and row[1].startswith("!") for row in rows)


def _replace(file: Path, text: str) -> None:
    """Clients read it at any time."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)


def make_key(file: Path, passphrase: str = "") -> Path:
    """A new Ed25519 key in *file*, and its public half beside it; *file*."""
    _keygen("-q", "-t", "ed25519", "-N", passphrase, "-C", "gridcast test-bed", "-f", str(file))
    return file


def public(key: Path) -> Path:
    """The public half of *key*."""
    return key.with_name(f"{key.name}.pub")


def _keygen(*arguments: str) -> None:
    done = subprocess.run([locate("ssh-keygen"), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TestbedError(f"ssh-keygen failed: {done.stderr.strip()}")
