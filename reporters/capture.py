"""The output of a program in bounded memory: its first and its last bytes."""

from __future__ import annotations


class Capture:
    """Keeps at most *limit_bytes* of output: the first half and the latest half.

    When the bytes *marker* arrive, the output up to and including the marker is discarded. *has_begun* is
    true once the marker has arrived; without a marker it is true from the start.
    """

    def __init__(self, limit_bytes: int, marker: bytes = b"") -> None:
        self._half = limit_bytes // 2
        self._marker = marker
        self._recent = b""  # the marker may arrive in pieces
        self.has_begun = not marker
        self._clear()

    def add(self, data: bytes) -> None:
        if not self.has_begun:
            _, marker, output = (self._recent + data).partition(self._marker)
            self._recent = (self._recent + data)[-len(self._marker) :]
            if marker:
                self.has_begun = True
                self._clear()
                data = output
        self._append(data)

    def _clear(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._cut_bytes = 0

    def _append(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self._cut_bytes += surplus

    def text(self) -> str:
        """Return the output as text, with a note in the middle that counts the bytes that were cut."""
        cut = f"\n[... {self._cut_bytes} bytes cut ...]\n".encode() if self._cut_bytes else b""
        return bytes(self._head + cut + self._tail).decode("utf-8", "replace")
