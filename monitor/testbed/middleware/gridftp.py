"""GridFTP servers, one a site, on addresses of their own and ports that the kernel chooses.

Each runs in the foreground as whoever starts it, and its user is mapped to him: everything that he may read
or write there, the user may.
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
    """A server to be: it listens on *address*, and its certificate is for *name* and the address.

    *directory* gets its logs. *launcher* is what its command begins with, such as one that enters a network
    namespace; the server must stay in the foreground behind it. Port 0 is one that the
    kernel chooses.
    """

    name: str
    address: str
    directory: Path
    launcher: Sequence[str] = ()
    port: int = 0


@dataclass(frozen=True)
class GridFtpServer:
    """A GridFTP server that serves. *subject* is the distinguished name in its certificate."""

    security: Security
    site: GridFtpSite
    port: int
    subject: str
    running: process.Running

    @property
    def log(self) -> Path:
        return _log(self.site)

    def transfer(self, proxy: Path) -> dict[str, Any]:
        """What a resource says of its transfer to be reached here, with a *proxy*."""
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
    """Serve all *sites* until the context ends; by name. *options* are more of globus-gridftp-server's.

    Raises:
        MissingProgram: something is not installed.
        NotServing: a server did not come up; with what it said.
    """
    with contextlib.ExitStack() as stack:
        yield {site.name: stack.enter_context(server(security, site, *options)) for site in sites}


@contextlib.contextmanager
def server(security: Security, site: GridFtpSite, *options: str) -> Iterator[GridFtpServer]:
    """Serve one site until the context ends. Raises as ``servers`` does."""
    site.directory.mkdir(parents=True, exist_ok=True)
    identity = security.authority.host(site.name, [site.name, site.address])
    said = site.directory / "contact"
    said.unlink(missing_ok=True)
    to_file = ["sh", "-c", 'said=$1; shift; exec "$@" > "$said"', "sh", str(said)]
    argv = [*to_file, *site.launcher, locate("globus-gridftp-server"), *_arguments(site), *options]
    env = {**security.environment(identity), "GLOBUS_HOSTNAME": site.address}
    with server_process.serving(
        argv, ready=lambda: _port(site, said) > 0, env=env, log=_log(site)
    ) as running:
        yield GridFtpServer(security, site, _port(site, said), identity.subject, running)


def _port(site: GridFtpSite, said: Path) -> int:
    """The port that a server has said to listen at; 0 as long as it has not. Given ones are not said."""
    if site.port:
        return site.port if _log(site).exists() and _STARTED in _log(site).read_text("utf-8") else 0
    text = said.read_text(encoding="utf-8") if said.exists() else ""
    found = _LISTENS.search(text)
    return int(found["port"]) if found else 0


def _arguments(site: GridFtpSite) -> list[str]:
    interfaces = ["-control-interface", site.address, "-data-interface", site.address]
    # Of containers, root is often all there is, and no account has a password.
    accounts = ["-allow-root", "-allow-disabled-login"]
    log = ["-log-level", "ERROR,WARN,INFO", "-log-module", "stdio:buffer=0", "-logfile", str(_log(site))]
    return ["-port", str(site.port), *interfaces, *accounts, *log]


def _log(site: GridFtpSite) -> Path:
    return site.directory / "gridftp.log"
