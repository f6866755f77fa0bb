"""A site's door: one address, on which connections are accepted, refused, or met with silence."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

_BACKLOG = 128
_AGAIN_SECONDS = 0.1
_ACKNOWLEDGE_SECONDS = 0.002

log = logging.getLogger(__name__)


class SiteListener:
    """Accepts connections at *address*:*port* and hands each to *welcome* with the caller's address."""

    def __init__(self, address: str, port: int, welcome: Callable[[socket.socket, str], None]) -> None:
        self.address = address
        self.port = port
        self.welcome = welcome
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None

    @property
    def listens(self) -> bool:
        return self._accepting is not None

    def open(self) -> None:
        """Claim the address and accept connections. Raises OSError where it cannot be had."""
        if self._socket is None:
            self._socket = _bound_socket(self.address, self.port)
        self._socket.listen(_BACKLOG)
        self._accepting = asyncio.create_task(self._accept_all(self._socket))

    async def refuse(self) -> None:
        """Refuse connections from now on. The address stays ours: a bound socket that does not listen."""
        await self.close()
        with suppress(OSError):  # somebody was faster; opening again says so
            self._socket = _bound_socket(self.address, self.port)

    async def close(self) -> None:
        """Give the address back. May be called at any time."""
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
            except OSError as error:  # too many open files, or the peer has gone already
                log.warning("cannot accept a connection at %s: %s", self.address, error)
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                self.welcome(accepted, host)


def _bound_socket(address: str, port: int) -> socket.socket:
    # With the protocol named, asyncio switches Nagle's algorithm off for what is accepted.
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
    """Keep a connection open and say nothing, until the peer closes it."""
    loop = asyncio.get_running_loop()
    with accepted, suppress(OSError):
        while await loop.sock_recv(accepted, 4096):
            pass


async def acknowledge_at_once(accepted: socket.socket) -> None:
    """Until cancelled, send acknowledgements without delay; the kernel forgets that it was asked to.

    While it logs in, the OpenSSH client writes small pieces with Nagle's algorithm on: with delayed
    acknowledgements every log-in takes 80 ms longer.
    """
    with suppress(OSError):
        while accepted.fileno() >= 0:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            await asyncio.sleep(_ACKNOWLEDGE_SECONDS)
