"""What the agent tells the server of itself: the newest messages, sent with the next exchange."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from reporters.remote.agent.log import AgentLog
from reporters.report import rfc3339

MAX_NOTICES = 50
MAX_CHARACTERS = 1000
INFO, WARNING, ERROR = "info", "warning", "error"
_REPEAT_SECONDS = 3600.0


@dataclass(frozen=True)
class Notice:
    at: datetime
    level: str
    text: str

    def document(self) -> dict[str, str]:
        return {"at": rfc3339(self.at), "level": self.level, "text": self.text[:MAX_CHARACTERS]}


class Notices:
    """Logs messages and keeps the newest for the server; the same text at most once an hour. Thread-safe."""

    def __init__(self, log: AgentLog, now: Callable[[], datetime], steady: Callable[[], float]) -> None:
        self._log, self._now, self._steady = log, now, steady
        self._waiting: deque[Notice] = deque(maxlen=MAX_NOTICES)
        self._last: dict[str, float] = {}
        self._changing = threading.Lock()

    def add(self, level: str, text: str) -> None:
        """Log *text*, and tell the server, unless the same text was added within the hour."""
        with self._changing:
            now = self._steady()
            self._last = {each: at for each, at in self._last.items() if now - at < _REPEAT_SECONDS}
            if text in self._last or len(self._last) >= MAX_NOTICES * 4:
                return
            self._last[text] = now
            self._waiting.append(Notice(self._now(), level, text))
        self._log.write(level, text)

    def log(self, level: str, text: str) -> None:
        """Log *text* only."""
        self._log.write(level, text)

    def take(self) -> Sequence[Notice]:
        """Return the waiting messages, oldest first, and forget them; ``put_back`` after a failure."""
        with self._changing:
            taken, self._waiting = list(self._waiting), deque(maxlen=MAX_NOTICES)
            return taken

    def put_back(self, notices: Sequence[Notice]) -> None:
        with self._changing:
            self._waiting = deque([*notices, *self._waiting], maxlen=MAX_NOTICES)
