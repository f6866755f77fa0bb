"""A site's listener: accepts connections, refuses connections, or accepts connections and sends nothing."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

_BACKLOG = 128
_RETRY_SECONDS = 0.1
_ACKNOWLEDGE_SECONDS = 0.002

log = logging.getLogger(__name__)


class SiteListener:
    """Accepts connections at *address*:*port* and passes each to *on_accept* with the client's address."""

    def __init__(self, address: str, port: int, on_accept: Callable[[socket.socket, str], None]) -> None:
        self.address = address
        self.port = port
        self.on_accept = on_accept
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None

    @property
    def listens(self) -> bool:
        return self._accepting is not None

    def open(self) -> None:
        """Bind the address and accept connections. Raises OSError if the address cannot be bound."""
        if self._socket is None:
            self._socket = _bound_socket(self.address, self.port)
        self._socket.listen(_BACKLOG)
        self._accepting = asyncio.create_task(self._accept_all(self._socket))

    async def refuse(self) -> None:
        """Refuse connections from now on, but keep the address: bind a socket that does not listen."""
        await self.close()
        with suppress(OSError):  # taken by another process: ``open`` raises then
            self._socket = _bound_socket(self.address, self.port)

    async def close(self) -> None:
        """Stop accepting and release the address; may be called at any time."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
            self._accepting = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def _accept_all(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, (host, _) = await loop.sock_accept(listening)
            except OSError as error:  # too many open files, or the peer has disconnected
                log.warning("cannot accept a connection at %s: %s", self.address, error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self.on_accept(accepted, host)


def _bound_socket(address: str, port: int) -> socket.socket:
    # With IPPROTO_TCP given, asyncio disables Nagle's algorithm for accepted sockets.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address, port))
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


async def swallow(accepted: socket.socket) -> None:
    """Keep a connection open and send nothing until the peer closes it."""
    loop = asyncio.get_running_loop()
    with accepted, suppress(OSError):
        while await loop.sock_recv(accepted, 4096):
            pass


async def acknowledge_at_once(accepted: socket.socket) -> None:
    """Disable delayed acknowledgements until cancelled, again and again, as the kernel re-enables them.

    During the login the OpenSSH client writes small packets with Nagle's algorithm: with delayed
    acknowledgements every login takes 80 ms longer.
    """
    with suppress(OSError):
        while accepted.fileno() >= 0:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            await asyncio.sleep(_ACKNOWLEDGE_SECONDS)
