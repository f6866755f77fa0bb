"""A fake grid that only records the log."""

from __future__ import annotations


class LogOnlyGrid:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, text: str, level: str = "info") -> None:
        self.lines.append(text)
