"""A site's file server: real files, arriving as fast as the link, failing as the weather says."""

from __future__ import annotations

import asyncio
import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import asyncssh

from monitor.testbed.sites.breaking import reset, stall
from monitor.testbed.sites.effects import Link
from monitor.testbed.sites.pacing import Pace

_FULL_AFTER_BYTES = 1 << 16
_SHORTEST_WAIT_SECONDS = 0.001


@dataclass(frozen=True)
class Incoming:
    """What becomes of files that a connection brings: its link, when it was opened, the disk's fault."""

    link: Link
    opened_at: float  # of the event loop's clock
    disk_fault: str | None
    reference_bytes: int


class SiteStorage(asyncssh.SFTPServer):
    """SFTP, which is what scp speaks since OpenSSH 9; relative paths begin at the site's home."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], home: Path, incoming: Incoming) -> None:
        super().__init__(channel)
        self.home = os.fsencode(home)
        self.incoming = incoming
        self.pace = Pace(incoming.opened_at, incoming.link.bytes_per_second)
        self.received_bytes = 0

    def map_path(self, path: bytes) -> bytes:
        return os.path.join(self.home, path)  # noqa: PTH118 - bytes, which Path does not take

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        if pflags & asyncssh.FXF_WRITE and self.incoming.disk_fault == "unwritable":
            raise asyncssh.SFTPPermissionDenied("Permission denied")
        file: object = super().open(path, pflags, attrs)
        return file

    async def write(self, file_obj: IO[bytes], offset: int, data: bytes) -> int:  # type: ignore[override] # the base is declared without async, which it allows
        if self.incoming.disk_fault == "full" and self.received_bytes + len(data) > _FULL_AFTER_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.received_bytes += len(data)
        await self._wait_until_due()
        file_obj.seek(offset)
        written = file_obj.write(data)
        if self.received_bytes >= self.incoming.reference_bytes / 2:
            await self._break()
        return written

    async def close(self, file_obj: IO[bytes]) -> None:  # type: ignore[override] # as above
        if file_obj.writable():
            await self._break()  # a file that is shorter than half of the reference breaks here
            if self.incoming.link.fault == "corrupt":
                flip_middle_byte(file_obj)
        super().close(file_obj)

    def exit(self) -> None:
        """Tell the client that all went well: without an exit status its scp calls the copy failed."""
        self.channel.exit(0)

    async def _wait_until_due(self) -> None:
        delay = self.pace.delay_seconds(self.received_bytes, asyncio.get_running_loop().time())
        if delay > _SHORTEST_WAIT_SECONDS:
            await asyncio.sleep(delay)

    async def _break(self) -> None:
        if self.incoming.link.fault == "reset":
            reset(self.connection)
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        if self.incoming.link.fault == "stall":
            await stall(self.connection)


def flip_middle_byte(file: IO[bytes]) -> None:
    """Change one bit in the middle of what has been stored in *file*."""
    file.flush()
    handle = file.fileno()
    middle = os.fstat(handle).st_size // 2
    path = f"/proc/self/fd/{handle}"  # the handle itself may be for writing only
    with Path(path).open("r+b", buffering=0) as again:
        again.seek(middle)
        byte = again.read(1)
        again.seek(middle)
        again.write(bytes(value ^ 1 for value in byte))
