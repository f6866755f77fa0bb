"""A real XRootD server with https, its users' proxies and tokens, and a server of another authority."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from monitor.testbed.middleware import xrootd
from monitor.testbed.middleware.gsi import Security


@contextmanager
def xrootd_servers(directory: Path) -> Iterator[dict[str, str]]:
    """Yield variables: ROOT and HTTPS are URLs, PROXY and further credentials are files."""
    security = Security.create(directory / "security")
    foreign = Security.create(directory / "foreign")
    exported = directory / "exported"
    for name in ("open/directory/below", "closed"):
        (exported / name).mkdir(parents=True)
    (exported / "open" / "file").write_bytes(b"x" * 5000)
    (exported / "closed" / "file").write_text("secret\n")
    (exported / "open" / "full").symlink_to("/dev/full")
    for path in (exported, *exported.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o777)
    site = xrootd.XrootdSite("site", directory / "server", exported, ["/closed"])
    proxy = security.proxy()
    with xrootd.servers(security, [site]) as servers:
        server = servers["site"]
        tokens = directory / "tokens"
        tokens.mkdir()
        (tokens / "good").write_text(server.macaroon(proxy))
        (tokens / "reading").write_text(server.macaroon(proxy, activities="DOWNLOAD"))
        (tokens / "other-path").write_text(server.macaroon(proxy, path="/elsewhere/"))
        (tokens / "damaged").write_text(server.macaroon(proxy)[:-9] + "AAAAAAAAA")
        yield {
            "ROOT": f"root://{xrootd.ADDRESS}:{server.port}",
            "HTTPS": f"https://{xrootd.ADDRESS}:{server.https_port}",
            "TOKENS": str(tokens),
            "X509_USER_PROXY": str(proxy),
            "X509_CERT_DIR": str(security.authority.trust),
            "CAPATH": str(security.authority.trust),
            "FOREIGN_PROXY": str(foreign.proxy()),
            "FOREIGN_TRUST": str(foreign.authority.trust),
            "EXPIRED": str(security.expired_proxy()),
            "EMPTY": str(_empty(directory / "empty")),
            "XRD_CONNECTIONRETRY": "0",
            "XRD_CONNECTIONWINDOW": "2",
            "XRD_STREAMTIMEOUT": "5",
            "XRD_REQUESTTIMEOUT": "5",
        }


def _empty(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory
