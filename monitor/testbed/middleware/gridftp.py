"""GridFTP servers, one per site, each on its own address and at a port chosen by the kernel.

The servers run in the foreground as the current user; the grid user is mapped to the same account.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.testbed.middleware import server_process
from monitor.testbed.middleware.gsi import Security
from monitor.testbed.middleware.programs import locate
from reporters import process

_LISTENS = re.compile(r"^Server listening at \S+:(?P<port>\d+)$", re.MULTILINE)
_STARTED = "Server started in daemon mode"


@dataclass(frozen=True)
class GridFtpSite:
    """Options of a server.

    Attributes:
        name: name of the site; the server's certificate is for this name and ``address``.
        address: IP address on which the server listens.
        directory: directory for the server's logs.
        launcher: command that runs the server's command, e.g. to enter a network namespace; it must stay in
            the foreground.
        port: TCP port; with 0 the kernel chooses a free port.
    """

    name: str
    address: str
    directory: Path
    launcher: Sequence[str] = ()
    port: int = 0


@dataclass(frozen=True)
class GridFtpServer:
    """A running GridFTP server. *subject* is the distinguished name in its certificate."""

    security: Security
    site: GridFtpSite
    port: int
    subject: str
    running: process.Running

    @property
    def log(self) -> Path:
        return _log(self.site)

    def transfer(self, proxy: Path) -> dict[str, Any]:
        """Return the transfer options of a resource that uses this server with *proxy*."""
        return {
            "kind": "gridftp",
            "host": self.site.address,
            "port": self.port,
            "subject": self.subject,
            "proxy_file": str(proxy),
            "ca_directory": str(self.security.authority.trust),
        }


@contextlib.contextmanager
def servers(
    security: Security, sites: Sequence[GridFtpSite], *options: str
) -> Iterator[dict[str, GridFtpServer]]:
    """Run servers for *sites* until the context ends; yield the servers by name.

    *options* are options of the program ``globus-gridftp-server``.

    Raises:
        MissingProgram: a program is not installed.
        NotServing: a server did not come up; the message has its output.
    """
    with contextlib.ExitStack() as stack:
        yield {site.name: stack.enter_context(server(security, site, *options)) for site in sites}


@contextlib.contextmanager
def server(security: Security, site: GridFtpSite, *options: str) -> Iterator[GridFtpServer]:
    """Run the server of one site until the context ends. Raises as ``servers`` does."""
    site.directory.mkdir(parents=True, exist_ok=True)
    identity = security.authority.host(site.name, [site.name, site.address])
    contact_file = site.directory / "contact"
    contact_file.unlink(missing_ok=True)
    to_file = ["sh", "-c", 'file=$1; shift; exec "$@" > "$file"', "sh", str(contact_file)]
    argv = [*to_file, *site.launcher, locate("globus-gridftp-server"), *_arguments(site), *options]
    env = {**security.environment(identity), "GLOBUS_HOSTNAME": site.address}
    with server_process.serving(
        argv, ready=lambda: _port(site, contact_file) > 0, env=env, log=_log(site)
    ) as running:
        yield GridFtpServer(security, site, _port(site, contact_file), identity.subject, running)


def _port(site: GridFtpSite, contact_file: Path) -> int:
    """Return the port once the server listens, else 0.

    The server prints the port only if the kernel chose it.
    """
    if site.port:
        return site.port if _log(site).exists() and _STARTED in _log(site).read_text("utf-8") else 0
    text = contact_file.read_text(encoding="utf-8") if contact_file.exists() else ""
    match = _LISTENS.search(text)
    return int(match["port"]) if match else 0


def _arguments(site: GridFtpSite) -> list[str]:
    interfaces = ["-control-interface", site.address, "-data-interface", site.address]
    # Containers often have no user but root, and no account with a password.
    accounts = ["-allow-root", "-allow-disabled-login"]
    log = ["-log-level", "ERROR,WARN,INFO", "-log-module", "stdio:buffer=0", "-logfile", str(_log(site))]
    return ["-port", str(site.port), *interfaces, *accounts, *log]


def _log(site: GridFtpSite) -> Path:
    return site.directory / "gridftp.log"
