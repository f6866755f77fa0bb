"""Break a connection: abort it, or keep it open and silent."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

from asyncssh.connection import SSHConnection

LONGEST_STALL_SECONDS = 3600.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # l_onoff, l_linger: closing sends RST and drops unsent data


def reset(connection: SSHConnection) -> None:
    """Abort the TCP connection with a RST."""
    connection.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    connection.abort()


async def stall(connection: SSHConnection) -> None:
    """Stop reading from the TCP connection and keep it open, so that keep-alives remain unanswered too.

    The server does not notice either that the peer disconnects, so it aborts the connection after an hour.
    """
    transport = connection._transport  # noqa: SLF001 - asyncssh has no public way to stop reading
    if isinstance(transport, asyncio.Transport):
        transport.pause_reading()
    with suppress(TimeoutError):
        await asyncio.wait_for(connection.wait_closed(), LONGEST_STALL_SECONDS)
    reset(connection)
