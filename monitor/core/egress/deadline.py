"""One deadline for all that a call does; a timeout of a socket would start again with every byte."""

from __future__ import annotations

import io
import socket
import time
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PIECE_BYTES = 1 << 16


class CallDeadline:
    def __init__(self, seconds: float) -> None:
        self._seconds, self._until = seconds, time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left; raises TimeoutError when none is."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise self.over()
        return left

    def over(self) -> TimeoutError:
        return TimeoutError(f"no answer within {self._seconds:g} s")


class TimedChannel:
    """Takes the place of a socket in ``http.client``: every operation ends at *deadline*."""

    def __init__(self, channel: socket.socket, deadline: CallDeadline) -> None:
        self._channel, self._deadline = channel, deadline

    def sendall(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE_BYTES):
            self._channel.settimeout(self._deadline.left())
            self._channel.sendall(data[start : start + _PIECE_BYTES])

    def makefile(self, _mode: str) -> BinaryIO:
        return io.BufferedReader(_TimedReader(self._channel, self._deadline))

    def close(self) -> None:
        """Do nothing: the caller closes the socket, when it has read the body."""


class _TimedReader(io.RawIOBase):
    def __init__(self, channel: socket.socket, deadline: CallDeadline) -> None:
        self._channel, self._deadline = channel, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._channel.settimeout(self._deadline.left())
        return self._channel.recv_into(memoryview(buffer))
