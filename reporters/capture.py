"""Output of a program in bounded memory: its beginning and its end."""

from __future__ import annotations


class Capture:
    """Keeps at most *limit_bytes*: the first half as it came, and the latest half."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._cut_bytes = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self._cut_bytes += surplus

    def text(self) -> str:
        """All of it as text; where something is missing, a line says how much."""
        cut = f"\n[... {self._cut_bytes} bytes cut ...]\n".encode() if self._cut_bytes else b""
        return bytes(self._head + cut + self._tail).decode("utf-8", "replace")
