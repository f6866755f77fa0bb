"""A site's SFTP server: real files that arrive at the rate of the link and fail with its faults."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO

import asyncssh

from monitor.testbed.sites.inflow import Inflow

_FULL_AFTER_BYTES = 1 << 16


class SiteStorage(asyncssh.SFTPServer):
    """An SFTP session, which scp uses too since OpenSSH 9; relative paths begin at the site's *home*."""

    def __init__(
        self,
        channel: asyncssh.SSHServerChannel[bytes],
        *,
        home: Path,
        inflow: Inflow,
        disk_fault: str | None,
    ) -> None:
        super().__init__(channel)
        self.home = os.fsencode(home)
        self.inflow = inflow
        self.disk_fault = disk_fault

    def map_path(self, path: bytes) -> bytes:
        return os.path.join(self.home, path)  # noqa: PTH118 - bytes, which Path does not accept

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        if pflags & asyncssh.FXF_WRITE and self.disk_fault == "unwritable":
            raise asyncssh.SFTPPermissionDenied("Permission denied")
        file: object = super().open(path, pflags, attrs)
        return file

    async def write(self, file_obj: IO[bytes], offset: int, data: bytes) -> int:  # type: ignore[override] # asyncssh accepts coroutines
        await self.inflow.admit(len(data))
        file_obj.seek(offset)
        if self.disk_fault == "full" and offset + len(data) > _FULL_AFTER_BYTES:
            file_obj.write(data[: max(0, _FULL_AFTER_BYTES - offset)])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return file_obj.write(data)

    async def close(self, file_obj: IO[bytes]) -> None:  # type: ignore[override] # asyncssh accepts coroutines
        try:
            if file_obj.writable():
                await self.inflow.end()
                if self.inflow.fault == "corrupt":
                    flip_middle_bit(file_obj)
        finally:
            file_obj.close()

    def exit(self) -> None:
        """Send exit status 0: without an exit status, scp reports a failed copy."""
        self.channel.exit(0)


def flip_middle_bit(file: IO[bytes]) -> None:
    """Flip one bit in the middle of the stored *file*, which may be open for writing only."""
    file.flush()
    with Path(f"/proc/self/fd/{file.fileno()}").open("r+b", buffering=0) as reopened:
        middle = os.fstat(reopened.fileno()).st_size // 2
        reopened.seek(middle)
        byte = reopened.read(1)
        reopened.seek(middle)
        reopened.write(bytes(value ^ 1 for value in byte))
