"""Filters and the format of log records."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

_BUSY = (503, 507)  # answers that ask the client to try again
_PING_KEY = re.compile(r"(gcping_)[\w-]+")  # a secret in an address, which Django logs with an error
EVERY_SECONDS = 60.0  # hundreds of agents with a backlog may get such answers


class BusyAnswers(logging.Filter):
    """Turn the records of busy answers into warnings of one line, one a minute; other records stay.

    *steady* returns seconds.
    """

    def __init__(self, name: str = "", steady: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name)
        self._steady = steady
        self._next = steady()

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", None) not in _BUSY:
            return True
        if self._steady() < self._next:
            return False
        self._next = self._steady() + EVERY_SECONDS
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        record.exc_info = None
        return True


class LineFormatter(logging.Formatter):
    """Formats records, tracebacks included, without the ping keys in addresses."""

    def format(self, record: logging.LogRecord) -> str:
        return _PING_KEY.sub(r"\1...", super().format(record))
