"""The address that the web server listens on."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass


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

    def check(self) -> None:
        """Check that a server can listen on the address: bind the address and release it.

        Raises:
            OSError: the address is in use, is no address of this machine, or is not permitted.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.socket(family) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.host, self.port))

    def is_free(self) -> bool:
        try:
            self.check()
        except OSError:
            return False
        return True

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def free_loopback_address(preferred_port: int = 8000) -> Address:
    """Return loopback with its first free port from *preferred_port* on.

    Raises:
        OSError: a hundred ports are in use.
    """
    for port in range(preferred_port, preferred_port + 100):
        address = Address("127.0.0.1", port)
        if address.is_free():
            return address
    raise OSError(f"every port from {preferred_port} to {preferred_port + 99} on 127.0.0.1 is in use")
