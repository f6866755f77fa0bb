"""Faults of a connection: cut, or silent."""

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
    """Stop reading from the TCP connection and keep it open: keep-alives remain unanswered too.

    The disconnect of the peer is not noticed either, so the connection is aborted after an hour.
    """
    transport = connection._transport  # noqa: SLF001 - asyncssh has no public way to stop reading
    if isinstance(transport, asyncio.Transport):
        transport.pause_reading()
    with suppress(TimeoutError):
        await asyncio.wait_for(connection.wait_closed(), LONGEST_STALL_SECONDS)
    reset(connection)
