"""The incoming bytes of one connection: paced and broken by the weather."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable

from asyncssh.connection import SSHConnection

from monitor.testbed.sites.connection_faults import reset, stall
from monitor.testbed.sites.effects import IncomingLink
from monitor.testbed.sites.pacing import Pace

_SHORTEST_WAIT_SECONDS = 0.001


class Inflow:
    """Paces the bytes of one connection that was opened at *opened_at* (clock of the event loop).

    If *link* has a fault, the connection breaks after half of *reference_bytes* or, if the file is shorter,
    at the end of the file. *on_end* is called after the last byte with the time at which this byte was due.
    """

    def __init__(
        self,
        connection: SSHConnection,
        link: IncomingLink,
        *,
        opened_at: float,
        reference_bytes: int,
        on_end: Callable[[float], None],
    ) -> None:
        self.connection = connection
        self.on_end = on_end
        self.fault = link.fault
        self.pace = Pace(opened_at, link.bytes_per_second)
        self.breaks_after_bytes = reference_bytes // 2
        self.received_bytes = 0

    async def admit(self, size_bytes: int) -> None:
        """Wait until *size_bytes* more are due. Raises ConnectionResetError if the connection breaks."""
        self.received_bytes += size_bytes
        now = asyncio.get_running_loop().time()
        delay = self.pace.delay_seconds(self.received_bytes, now)
        if delay > _SHORTEST_WAIT_SECONDS:
            await asyncio.sleep(delay)
        if self.received_bytes > self.breaks_after_bytes:
            await self._break()

    async def end(self) -> None:
        """Break a faulty connection that has not broken yet, else call *on_end*.

        Raises:
            ConnectionResetError: the connection breaks.
        """
        await self._break()
        self.on_end(self.pace.due_at(self.received_bytes))

    async def _break(self) -> None:
        if self.received_bytes and self.fault in ("reset", "stall"):
            if self.fault == "reset":
                reset(self.connection)
            else:
                await stall(self.connection)
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
