"""Servers that copy among themselves: where one is, and what of a resource's files it shows."""

from __future__ import annotations

import posixpath
import re
import socket
from dataclasses import dataclass

from reporters.base import CannotCopy, End

CONNECT_SECONDS = 10.0
_SAFE_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*|[0-9A-Fa-f:.]+", re.ASCII)


@dataclass(frozen=True)
class Endpoint:
    """The server of one end, for the reporter and for the other end's server alike.

    *directory* is the one of the resource that the server exports as its root.
    """

    resource: str
    host: str
    port: int
    directory: str

    @classmethod
    def of(cls, end: End, port: int) -> Endpoint:
        """From the options *host* (by default its shell's), *port* (by default *port*) and *directory*.

        Raises CannotCopy: they make no address.
        """
        name, options = end.resource.name, end.options
        host = options.get("host") or end.resource.address or end.resource.shell.get("host")
        port = options.get("port") or port
        directory = options.get("directory") or "/"
        if not isinstance(host, str) or not _SAFE_HOST.fullmatch(host):
            raise CannotCopy(f"{name} has no host that a URL takes: {host!r}", resource=name)
        if not isinstance(port, int) or not 0 < port < 65536:
            raise CannotCopy(f"{name} has no port that a URL takes: {port!r}", resource=name)
        if not isinstance(directory, str) or not directory.startswith("/"):
            raise CannotCopy(
                f"the directory that {name} exports is not absolute: {directory!r}", resource=name
            )
        return cls(name, host, port, directory)

    @property
    def address(self) -> str:
        """Host and port, as a URL has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def exported(self, path: str) -> str:
        """What the server calls *path*. Raises CannotCopy where it does not export that."""
        plain = posixpath.normpath(path)
        root = posixpath.normpath(self.directory)
        if posixpath.commonpath([root, plain]) != root:
            raise CannotCopy(f"{path} is not in {self.directory}, which is exported", resource=self.resource)
        return posixpath.join("/", posixpath.relpath(plain, root))

    def check_reachable(self, timeout_seconds: float) -> None:
        """Raise CannotCopy unless something accepts connections there: where nothing does, clients hang."""
        address = (self.host, self.port)
        try:
            socket.create_connection(address, timeout=min(CONNECT_SECONDS, timeout_seconds)).close()
        except OSError as error:
            raise CannotCopy(
                f"cannot connect to {self.address}: {error.strerror or error}", resource=self.resource
            ) from None
