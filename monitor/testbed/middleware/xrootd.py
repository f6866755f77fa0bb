"""XRootD servers, one per site: root:// with grid security, and https with third-party copies and macaroons.

A server exports one directory as its "/" to the user of the site's security, at two free ports. XRootD
refuses to run as root. If the test-bed runs as root, it starts XRootD as the user ``nobody`` with the
capability to access every file. The files that XRootD writes belong to ``nobody``; root can read, move and
remove them.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import pwd
import secrets
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.testbed.errors import NotServing, TestbedError
from monitor.testbed.middleware import server_process
from monitor.testbed.middleware.gsi import Security
from monitor.testbed.middleware.pki import Certificate
from monitor.testbed.middleware.programs import locate
from reporters import process

ADDRESS = "localhost"
_USER = "prober"
_NOBODY = "nobody"
_REQUEST_SECONDS = 60.0
_RIGHTS = "+dac_override,+fowner"
# Servers copy with their own client, which by default retries an unreachable server for minutes.
_CLIENT = {"XRD_CONNECTIONRETRY": "1", "XRD_CONNECTIONWINDOW": "5", "XRD_STREAMTIMEOUT": "10"}
_CONFIGURATION = """\
all.role server
all.sitename {name}
all.export /
oss.localroot {exported}
all.adminpath {directory}/run
all.pidpath {directory}/run
xrd.port {port}
xrd.allow host localhost
xrd.tls {certificate} {key}
xrd.tlsca certdir {trust}
xrootd.chksum max 2 adler32 md5
ofs.tpc fcreds gsi =X509_USER_PROXY ttl 60 60 xfr 9 streams 2,15 autorm pgm {client} --server
ofs.authorize 1
ofs.authlib ++ libXrdMacaroons.so
acc.authdb {directory}/rights
xrootd.seclib libXrdSec.so
sec.protocol gsi -certdir:{trust} -cert:{certificate} -key:{key} -gridmap:{directory}/gridmap -crl:0 \
-gmapopt:2 -dlgpxy:1 -exppxy:=creds
sec.protbind * only gsi
xrd.protocol http:{https_port} libXrdHttp.so
http.cert {certificate}
http.key {key}
http.cadir {trust}
http.gridmap {directory}/gridmap
http.desthttps yes
http.header2cgi Authorization authz
http.exthandler xrdtpc libXrdHttpTPC.so
http.exthandler xrdmacaroons libXrdMacaroons.so
macaroons.secretkey {directory}/secret
"""


@dataclass(frozen=True)
class XrootdSite:
    """Options of a server.

    Attributes:
        directory: directory of the server's own files.
        exported: directory that the server exports as "/".
        closed: prefixes of paths that the user may list but not read or write.
    """

    name: str
    directory: Path
    exported: Path
    closed: Sequence[str] = ()


@dataclass(frozen=True)
class XrootdServer:
    """A running XRootD server."""

    site: XrootdSite
    security: Security
    port: int
    https_port: int
    running: process.Running

    @property
    def pid(self) -> int:
        """Return the pid of the server's own process, to which signals can be sent."""
        return int(_pid_file(self.site).read_text(encoding="ascii"))

    @property
    def log(self) -> Path:
        return _log(self.site)

    def transfer(self, proxy: Path) -> dict[str, Any]:
        """Return the transfer options of a resource for copies by xrdcp with *proxy*."""
        return {"kind": "xrootd", **self._location(self.port), "proxy_file": str(proxy)}

    def https_transfer(self, token: Path) -> dict[str, Any]:
        """Return the transfer options of a resource for copies by WebDAV with *token*."""
        return {"kind": "http", **self._location(self.https_port), "token_file": str(token)}

    def macaroon(self, proxy: Path, *, path: str = "/", minutes: int = 60, activities: str = "") -> str:
        """Request a macaroon (a token for https) for *path* and all paths below it, authenticated by *proxy*.

        Raises:
            TestbedError: the server refuses.
        """
        request = {
            "caveats": [f"activity:{activities or 'DOWNLOAD,UPLOAD,DELETE,MANAGE,LIST'}"],
            "validity": f"PT{minutes}M",
        }
        context = ssl.create_default_context(capath=str(self.security.authority.trust))
        context.load_cert_chain(proxy)
        connection = http.client.HTTPSConnection(
            ADDRESS, self.https_port, context=context, timeout=_REQUEST_SECONDS
        )
        with contextlib.closing(connection):
            connection.request(
                "POST", path, json.dumps(request), {"Content-Type": "application/macaroon-request"}
            )
            answer = connection.getresponse()
            body = answer.read()
        if answer.status != 200:
            raise TestbedError(f"{self.site.name} refused a macaroon: {answer.status} {body.decode()}")
        return str(json.loads(body)["macaroon"])

    def _location(self, port: int) -> dict[str, Any]:
        trust, exported = self.security.authority.trust, self.site.exported
        return {"host": ADDRESS, "port": port, "directory": str(exported), "ca_directory": str(trust)}


@contextlib.contextmanager
def servers(security: Security, sites: Sequence[XrootdSite]) -> Iterator[dict[str, XrootdServer]]:
    """Run servers for *sites* until the context ends; yield them by name.

    Raises:
        MissingProgram: a program is not installed.
        NotServing: a server did not come up; the message has its output.
    """
    certificate = security.authority.host(ADDRESS, [ADDRESS, "127.0.0.1", "::1"])
    with contextlib.ExitStack() as stack:
        yield {site.name: stack.enter_context(_server(security, certificate, site)) for site in sites}


@contextlib.contextmanager
def _server(security: Security, certificate: Certificate, site: XrootdSite) -> Iterator[XrootdServer]:
    port, https_port = server_process.free_port(ADDRESS), server_process.free_port(ADDRESS)
    configuration = _write_configuration(security, certificate, site, port, https_port)
    log = ["-l", f"={_log(site)}"]
    argv = [*_launcher(), locate("xrootd"), "-n", site.name, "-c", str(configuration), *log]
    env = {**_CLIENT, "X509_CERT_DIR": str(security.authority.trust)}
    _pid_file(site).unlink(missing_ok=True)

    def ready() -> bool:
        return all(server_process.listens(ADDRESS, number) for number in (port, https_port))

    # The server creates a directory with its name in the working directory.
    with server_process.serving(argv, ready=ready, env=env, cwd=site.directory, log=_log(site)) as running:
        yield XrootdServer(site, security, port, https_port, running)


def _write_configuration(
    security: Security, certificate: Certificate, site: XrootdSite, port: int, https_port: int
) -> Path:
    """Write the server's files to its directory; return the configuration file."""
    for directory in (site.directory, site.exported):
        directory.mkdir(parents=True, exist_ok=True)
    values = {
        "name": site.name,
        "exported": site.exported,
        "directory": site.directory,
        "port": port,
        "https_port": https_port,
        "certificate": certificate.certificate,
        "key": certificate.key,
        "trust": security.authority.trust,
        "client": locate("xrdcp"),
    }
    closed = "".join(f"{path} l " for path in site.closed)
    files = {
        "xrootd.cfg": _CONFIGURATION.format(**values),
        "gridmap": f'"{security.user.subject}" {_USER}\n',
        "rights": f"u {_USER} {closed}/ a\n",
        "secret": base64.b64encode(secrets.token_bytes(64)).decode() + "\n",
    }
    for name, text in files.items():
        (site.directory / name).touch(mode=0o600)
        (site.directory / name).write_text(text, encoding="utf-8")
    return site.directory / "xrootd.cfg"


def _launcher() -> list[str]:
    """Return the command that switches root to ``nobody`` with access to all files; empty for other users."""
    if os.geteuid() != 0:
        return []
    try:
        nobody = pwd.getpwnam(_NOBODY)
    except KeyError:
        raise NotServing(f"XRootD refuses to run as root, and there is no user {_NOBODY}") from None
    # Without the secure bit, access(2) denies files that open(2) allows.
    to_files = [f"--inh-caps={_RIGHTS}", f"--ambient-caps={_RIGHTS}", "--securebits=+no_setuid_fixup"]
    user = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    return [locate("setpriv"), *user, *to_files, "--"]


def _log(site: XrootdSite) -> Path:
    return site.directory / "xrootd.log"


def _pid_file(site: XrootdSite) -> Path:
    return site.directory / "run" / site.name / "xrootd.pid"
