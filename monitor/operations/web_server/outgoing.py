"""The answers of one connection: written by a thread, sent as fast as the client reads."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import BinaryIO

from monitor.operations.web_server.limits import Limits

_PIECE_BYTES = 256 * 1024


class Outgoing:
    """Takes the place of the socket for gunicorn's response: a write waits only if too much is unsent.

    The event loop calls ``flush`` to send the rest, whenever the socket can take more; ``wake``, which the
    loop sets, asks for the first such call. A thread that has to wait needs one of *waiting_threads*; without
    one the answer is broken off, so that slow clients never hold all threads.
    """

    wake: Callable[[], None]

    def __init__(self, sock: socket.socket, limits: Limits, waiting_threads: threading.Semaphore) -> None:
        self._sock, self._limits, self._waiting_threads = sock, limits, waiting_threads
        self._unsent: deque[memoryview] = deque()
        self._changed = threading.Condition()
        self._waits_since = 0.0  # the client keeps an answer waiting since then
        self._sent_bytes = 0  # since then
        self.unsent_bytes = 0
        self.is_broken = False
        self._held_until = 0.0

    def is_too_slow(self, now: float) -> bool:
        """Return whether the client reads its answer more slowly than permitted."""
        with self._changed:
            waits_seconds = now - self._waits_since if self._unsent else 0.0
            return self._limits.answer.is_too_slow(waits_seconds, self._sent_bytes)

    def hold(self, seconds: float) -> None:
        """Keep back what is written from now on: a client that is refused asks again only when it has it."""
        self._held_until = time.monotonic() + seconds

    @property
    def is_held(self) -> bool:
        return time.monotonic() < self._held_until

    def sendall(self, data: bytes) -> None:
        """Send *data*, or keep it for the event loop to send.

        Raises:
            BrokenPipeError: the client has gone, or reads too slowly.
        """
        with self._changed:
            if self.unsent_bytes > self._limits.most_waiting_bytes:
                self._wait()
            if self.is_broken:
                raise BrokenPipeError(errno.EPIPE, "the client has gone, or reads too slowly")
            if not self._unsent:
                self._waits_since, self._sent_bytes = time.monotonic(), 0
            self._unsent.append(memoryview(data))
            self.unsent_bytes += len(data)
            if len(self._unsent) > 1:
                return  # the event loop is sending
            self._send()
            is_unsent = bool(self._unsent)
        if is_unsent:
            self.wake()

    def sendfile(self, file: BinaryIO, offset: int = 0, count: int | None = None) -> int:
        """Send *count* bytes of *file* from *offset*, as ``socket.sendfile`` does; return how many."""
        file.seek(offset)
        left = count
        sent = 0
        while piece := file.read(_PIECE_BYTES if left is None else min(left, _PIECE_BYTES)):
            self.sendall(piece)
            sent += len(piece)
            left = None if left is None else left - len(piece)
        return sent

    def shutdown(self, _how: int) -> None:
        """Break off the answer: gunicorn calls this if it fails after its headers were sent."""
        self.break_off()
        raise BrokenPipeError(errno.EPIPE, "the answer was broken off")

    def close(self) -> None:
        """Do nothing: the event loop closes the connection."""

    def flush(self) -> None:
        """Send what the socket takes without waiting. Only the event loop calls this."""
        with self._changed:
            self._send()
            if self.unsent_bytes <= self._limits.most_waiting_bytes:
                self._changed.notify_all()

    def break_off(self) -> None:
        """Drop what is unsent; a waiting thread and each further write get ``BrokenPipeError``."""
        with self._changed:
            self.is_broken = True
            self._unsent.clear()
            self.unsent_bytes = 0
            self._changed.notify_all()

    def _send(self) -> None:
        if self.is_held:
            return
        try:
            while self._unsent:
                sent = self._sock.send(self._unsent[0])
                self._sent_bytes += sent
                self.unsent_bytes -= sent
                if sent == len(self._unsent[0]):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = self._unsent[0][sent:]
        except BlockingIOError:
            pass
        except OSError:
            self.break_off()

    def _wait(self) -> None:
        """Wait until the client has read, or the answer is broken off."""
        if not self._waiting_threads.acquire(blocking=False):
            self.break_off()
            return
        try:
            self._changed.wait_for(
                lambda: self.is_broken or self.unsent_bytes <= self._limits.most_waiting_bytes
            )
        finally:
            self._waiting_threads.release()
