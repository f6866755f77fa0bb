"""The address of a resource's file server and the directory that it exports."""

from __future__ import annotations

import posixpath
import socket
from dataclasses import dataclass

from probes.base import InvalidParameters
from reporters.base import CannotCopy, End
from reporters.connections import CONNECT_SECONDS, is_host


@dataclass(frozen=True)
class Endpoint:
    """The file server of one end of a transfer.

    The reporter and the server of the other end reach this server at *host* and *port*. *directory* is the
    directory of the resource that the server exports as its root.
    """

    resource: str
    host: str
    port: int
    directory: str

    @classmethod
    def of(cls, end: End, port: int) -> Endpoint:
        """Return the server that the options *host*, *port* and *directory* of *end* describe.

        Without the option *host*, the host is the address of the resource, or else the host of its shell. The
        argument *port* is the default of the option.

        Raises:
            InvalidParameters: the host is missing or invalid, or the directory is not absolute.
        """
        name, options = end.resource.name, end.options
        host = options.get("host") or end.resource.address or end.resource.shell.get("host")
        directory = options.get("directory", "/")
        if not is_host(host):
            raise InvalidParameters(
                f"resource {name}: host: expected a name or an address for a URL, got {host!r}"
            )
        if not directory.startswith("/"):
            raise InvalidParameters(
                f"resource {name}: directory: expected an absolute path, got {directory!r}"
            )
        return cls(name, str(host), options.get("port", port), directory)

    @property
    def address(self) -> str:
        """Host and port as in a URL: "host:port" or "[IPv6 address]:port"."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def exported(self, path: str) -> str:
        """Return *path* relative to the exported directory, as the server expects it.

        Raises:
            CannotCopy: *path* is outside the exported directory.
        """
        plain = posixpath.normpath(path)
        root = posixpath.normpath(self.directory)
        if posixpath.commonpath([root, plain]) != root:
            raise CannotCopy(
                f"{path} is not in the exported directory {self.directory}", resource=self.resource
            )
        return posixpath.join("/", posixpath.relpath(plain, root))

    def check_reachable(self, timeout_seconds: float) -> None:
        """Raise CannotCopy unless the server accepts a connection: clients hang without a connection."""
        address = (self.host, self.port)
        try:
            socket.create_connection(address, timeout=min(CONNECT_SECONDS, timeout_seconds)).close()
        except OSError as error:
            raise CannotCopy(
                f"cannot connect to {self.address}: {error.strerror or error}", resource=self.resource
            ) from None
