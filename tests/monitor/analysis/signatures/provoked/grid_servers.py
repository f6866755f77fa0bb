"""Real GridFTP servers and a GRAM gatekeeper, proxies that they refuse, and authorities that do not fit."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from monitor.testbed.middleware import gram, gridftp
from monitor.testbed.middleware.gsi import Security

_NAME = "site"  # of all servers: clients name the subject that they expect
_OPTIONS: dict[str, tuple[str, ...]] = {
    "SITE": (),
    "OTHER": (),
    "RESTRICTED": ("-rp", "/srv"),
    "DISABLED": ("-connections-disabled", "-offline-msg", "Maintenance until noon"),
    "READ_ONLY": ("-disable-command-list", "STOR,ESTO,MKD,DELE"),
}


@contextlib.contextmanager
def grid_servers(directory: Path) -> Iterator[dict[str, str]]:
    """Yield variables: addresses of servers, contacts of gatekeepers, SUBJECT, proxies, trust directories."""
    security = Security.create(directory / "security")
    variants = {
        "UNMAPPED": _with_gridmap(security, directory / "unmapped", ""),
        "MISMAPPED": _with_gridmap(
            security, directory / "mismapped", f'"{security.user.subject}" nobody-at-all\n'
        ),
        "FOREIGN": Security.create(directory / "foreign"),
    }
    proxy = security.proxy()
    with contextlib.ExitStack() as stack:
        ends = {
            name: stack.enter_context(_server(security, directory / name, *options))
            for name, options in _OPTIONS.items()
        }
        ends |= {
            name: stack.enter_context(_server(other, directory / f"{name}-server"))
            for name, other in variants.items()
        }
        keeper = stack.enter_context(gram.gatekeeper(security, "127.0.0.1", directory / "gatekeeper"))
        closed = stack.enter_context(
            gram.gatekeeper(variants["UNMAPPED"], "127.0.0.1", directory / "closed-gatekeeper")
        )
        yield {
            **{name: f"gsiftp://127.0.0.1:{server.port}" for name, server in ends.items()},
            "SUBJECT": ends["SITE"].subject,
            "CONTACT": keeper.contact,
            "CLOSED_CONTACT": closed.contact,
            "X509_USER_PROXY": str(proxy),
            "X509_CERT_DIR": str(security.authority.trust),
            "GLOBUS_HOSTNAME": "127.0.0.1",
            "EXPIRED": str(security.expired_proxy()),
            "USER_CERTIFICATE": str(security.user.certificate),
            "USER_KEY": str(security.user.key),
            "FOREIGN_PROXY": str(variants["FOREIGN"].proxy()),
            "FOREIGN_TRUST": str(variants["FOREIGN"].authority.trust),
            "NO_POLICY": str(_without_policy(security, directory / "no-policy")),
            "WRONG_POLICY": str(_with_policy(security, directory / "wrong-policy")),
            "UNREADABLE": str(_loose(proxy, directory / "loose")),
        }


def _server(
    security: Security, directory: Path, *options: str
) -> contextlib.AbstractContextManager[gridftp.GridFtpServer]:
    return gridftp.server(security, gridftp.GridFtpSite(_NAME, "127.0.0.1", directory), *options)


def _with_gridmap(security: Security, directory: Path, text: str) -> Security:
    shutil.copytree(security.directory, directory)
    (directory / "grid-mapfile").write_text(text)
    return Security(directory)


def _without_policy(security: Security, directory: Path) -> Path:
    shutil.copytree(security.authority.trust, directory)
    for file in directory.glob("*.signing_policy"):
        file.unlink()
    return directory


def _with_policy(security: Security, directory: Path) -> Path:
    shutil.copytree(security.authority.trust, directory)
    for file in directory.glob("*.signing_policy"):
        file.write_text(file.read_text().replace("gridcast/*", "elsewhere/*"))
    return directory


def _loose(proxy: Path, file: Path) -> Path:
    shutil.copy(proxy, file)
    file.chmod(0o644)
    return file
