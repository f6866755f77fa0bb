"""Output of a program in bounded memory: its beginning and its end."""

from __future__ import annotations


class Capture:
    """Keeps at most *limit_bytes*: the first half as it came, and the latest half.

    What comes up to the bytes *begins* is forgotten when they come; *begun* says whether they have.
    """

    def __init__(self, limit_bytes: int, begins: bytes = b"") -> None:
        self._half = limit_bytes // 2
        self._begins = begins
        self._recent = b""  # of what came before: the line may come in pieces
        self.begun = not begins
        self._forget()

    def add(self, data: bytes) -> None:
        if not self.begun:
            _, begins, said = (self._recent + data).partition(self._begins)
            self._recent = (self._recent + data)[-len(self._begins) :]
            if begins:
                self.begun = True
                self._forget()
                data = said
        self._keep(data)

    def _forget(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._cut_bytes = 0

    def _keep(self, data: bytes) -> None:
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
