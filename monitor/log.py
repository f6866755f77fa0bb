"""Filters of log records, and the id of the request that this thread answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar

# Empty outside of requests. ``monitor.api.http.request_ids`` sets it.
request_id: ContextVar[str] = ContextVar("request_id", default="")

_BUSY = (503, 507)  # answers that ask the client to try again
EVERY_SECONDS = 60.0  # hundreds of agents with a backlog may get such answers


class RequestId(logging.Filter):
    """Give each record the id of its request, as `` [id]``; empty outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        key = request_id.get()
        record.request_id = f" [{key}]" if key else ""
        return True


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
