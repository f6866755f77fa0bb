"""GRAM5: a gatekeeper with the fork job manager, which runs jobs as the current user.

Job managers keep the state of a job in ``~/.globus``; this path cannot be configured. At the end, the empty
directories that they left in this path are removed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import pwd
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.testbed.middleware import server_process
from monitor.testbed.middleware.gsi import Security
from monitor.testbed.middleware.programs import locate

PROGRAMS = (  # of the server, of its job manager, of its clients
    "globus-gatekeeper",
    "globus-job-manager",
    "globus-fork-starter",
    "globus-job-run",
    "grid-proxy-init",
    "openssl",
)
_CONTACT = re.compile(r"^GRAM contact: (?P<host>[^:]+):(?P<port>\d+):(?P<subject>.*)$", re.MULTILINE)
_GATEKEEPER = """\
-f
-port 0
-home /usr
-e /usr/sbin
-gridmap {gridmap}
-grid_services {directory}/services
-logfile {directory}/gatekeeper.log
-x509_cert_dir {trust}
-x509_user_proxy {credential}
"""
_JOB_MANAGER = """\
-home /usr
-type fork
-globus-host-cputype {machine}
-globus-host-manufacturer unknown
-globus-host-osname {system}
-globus-host-osversion {release}
-globus-toolkit-version 6.2
-state-file-dir {directory}/state
-globus-job-dir {directory}/jobs
-cache-location {directory}/cache
-x509-cert-dir {trust}
-service-tag test-bed
"""


@dataclass(frozen=True)
class Gatekeeper:
    """A running gatekeeper; *contact* is the contact string of its fork job manager."""

    security: Security
    address: str
    contact: str

    def shell(self, proxy: Path) -> dict[str, Any]:
        """Return the shell options of a resource that is reached through this gatekeeper with *proxy*."""
        return {
            "kind": "gram",
            "contact": self.contact,
            "callback_host": self.address,
            "proxy_file": str(proxy),
            "ca_directory": str(self.security.authority.trust),
        }


@contextlib.contextmanager
def gatekeeper(
    security: Security, address: str, directory: Path, *, path: str = "/usr/local/bin:/usr/bin:/bin"
) -> Iterator[Gatekeeper]:
    """Run a gatekeeper until the context ends, with logs and state in *directory*.

    The gatekeeper listens on all addresses of this host; its contact string contains *address*. *path* is the
    PATH of jobs.

    Raises:
        MissingProgram: a program is not installed.
        NotServing: the gatekeeper did not come up; the message has its output.
    """
    identity = security.authority.host("gatekeeper", ["gatekeeper", address])
    # An ordinary user's job manager reads LOGNAME, and dies without a message if it is not set.
    account = pwd.getpwuid(os.geteuid()).pw_name
    variables = {"GLOBUS_HOSTNAME": address, "LOGNAME": account, "PATH": path}
    environment = {**security.environment(identity), **variables}
    _configure(security, directory, environment["X509_USER_PROXY"])
    contact_file, log = directory / "contact", directory / "gatekeeper.log"
    to_file = ["sh", "-c", 'file=$1; shift; exec "$@" > "$file"', "sh", str(contact_file)]
    argv = [*to_file, locate("globus-gatekeeper"), "-conf", str(directory / "gatekeeper.conf")]
    with server_process.serving(argv, ready=lambda: _port(contact_file) > 0, env=environment, log=log):
        contact = f"{address}:{_port(contact_file)}/jobmanager-fork:{identity.subject}"
        yield Gatekeeper(security, address, contact)
    _tidy(address)


def _configure(security: Security, directory: Path, credential: str) -> None:
    for name in ("services", "state", "jobs", "cache"):
        (directory / name).mkdir(parents=True)
    values = {
        "directory": directory,
        "credential": credential,
        "gridmap": security.gridmap,
        "trust": security.authority.trust,
        "machine": platform.machine(),
        "system": platform.system(),
        "release": platform.release(),
    }
    (directory / "gatekeeper.conf").write_text(_GATEKEEPER.format(**values), encoding="utf-8")
    (directory / "job-manager.conf").write_text(_JOB_MANAGER.format(**values), encoding="utf-8")
    manager = f"{locate('globus-job-manager')} globus-job-manager -conf {directory}/job-manager.conf"
    service = directory / "services" / "jobmanager-fork"
    service.write_text(f"stderr_log,local_cred - {manager}\n", encoding="utf-8")


def _port(contact_file: Path) -> int:
    """Return the port in the contact string; 0 before the gatekeeper has printed it to *contact_file*."""
    text = contact_file.read_text(encoding="utf-8") if contact_file.exists() else ""
    match = _CONTACT.search(text)
    return int(match["port"]) if match else 0


def _tidy(address: str) -> None:
    """Remove the empty directories that job managers at *address* left in ``~/.globus``."""
    top = Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".globus"
    for directory in (top / "job" / address.partition(".")[0], top / "job", top):
        with contextlib.suppress(OSError):
            directory.rmdir()
