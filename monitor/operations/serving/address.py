"""The address that the web server listens on, and the socket that listens there."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

BACKLOG = 2048  # connections that wait until the web server accepts them


class InvalidAddress(ValueError):
    """A text is no address to listen on; the message says what was expected."""


@dataclass(frozen=True)
class Address:
    """An IP address of this machine and a TCP port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse ``127.0.0.1:8000`` or ``[::1]:8000``.

        Raises:
            InvalidAddress: the host is not an IP address, or the port is not from 1 to 65535.
        """
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        try:
            ipaddress.ip_address(host)
        except ValueError:
            colon = ""
        if not (colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise InvalidAddress(
                f"expected an IP address of this machine and a port, such as 127.0.0.1:8000, got {text!r}"
            )
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def local_host(self) -> str:
        """Return the host of URLs for this machine: loopback if the web server listens on all addresses."""
        host = self.host
        if ipaddress.ip_address(host).is_unspecified:
            host = "::1" if ":" in host else "127.0.0.1"
        return f"[{host}]" if ":" in host else host

    @property
    def local_url(self) -> str:
        """Return the URL of the web server for use on this machine."""
        return f"http://{self.local_host}:{self.port}/"

    def browser_url(self, hosts: Collection[str]) -> str:
        """Return the URL for a browser on this machine, which the web serves as *hosts*.

        At localhost if that is possible: browsers refuse passkeys at an address.
        """
        is_local = self.local_host in {"127.0.0.1", "[::1]"} and "localhost" in hosts
        return f"http://localhost:{self.port}/" if is_local else self.local_url

    @classmethod
    def of(cls, listener: socket.socket) -> Address:
        """Return the address on which *listener* listens."""
        host, port = listener.getsockname()[:2]
        return cls(host, port)

    def listen(self) -> socket.socket:
        """Return a socket that listens on the address; the caller closes it.

        Raises:
            OSError: the address is in use, is no address of this machine, or is not permitted.
        """
        listener = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.host, self.port))
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
        return listener

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def listen_on_loopback(first_port: int = 8000) -> socket.socket:
    """Return a socket that listens on the first free port of loopback from *first_port* on.

    Raises:
        OSError: a hundred ports are in use.
    """
    for port in range(first_port, first_port + 100):
        with contextlib.suppress(OSError):
            return Address("127.0.0.1", port).listen()
    raise OSError(f"every port from {first_port} to {first_port + 99} on 127.0.0.1 is in use")
