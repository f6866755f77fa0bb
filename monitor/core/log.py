"""Filters and the format of log records, and the id of the request that this thread answers."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

from monitor.core.clipping import MOST_MESSAGE, clipped

# Empty outside of requests. ``monitor.web.api.http.request_ids`` sets it.
request_id: ContextVar[str] = ContextVar("request_id", default="")

_MOST_LINES, _MOST_LINE = 150, 500  # of a traceback, and the characters of each
_FREQUENT = (421, 503, 507)  # answers that ask to name a proxy, or to try again
_PING_KEY = re.compile(r"(gcping_)[\w-]+")  # a secret in an address, which Django logs with an error
_HOSTS_SETTING = " to ALLOWED_HOSTS."  # the end of Django's advice
EVERY_SECONDS = 60.0  # hundreds of agents with a backlog, or a scanner, may get such answers


class RequestId(logging.Filter):
    """Give each record the id of its request, as `` [id]``; empty outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        key = request_id.get()
        record.request_id = f" [{key}]" if key else ""
        return True


class OncePer:
    """Says when a line may be logged again: at most once in *seconds*. *steady* returns seconds."""

    def __init__(self, seconds: float = EVERY_SECONDS, steady: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._steady = seconds, steady
        self._next = steady()

    def is_due(self) -> bool:
        """Return whether it may be logged now; then the time begins again."""
        now = self._steady()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True


class OneAMinute(logging.Filter):
    """Keep one record a minute, as a warning of one line without traceback.

    *steady* returns seconds.
    """

    def __init__(self, name: str = "", steady: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name)
        self._lines = OncePer(steady=steady)

    def filter(self, record: logging.LogRecord) -> bool:
        if not self._lines.is_due():
            return False
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        record.exc_info = None
        return True


class RefusedHosts(OneAMinute):
    """Keep one record a minute of requests for other hosts; name the variable instead of Django's setting."""

    def filter(self, record: logging.LogRecord) -> bool:
        if str(record.msg).endswith(_HOSTS_SETTING):
            record.msg = f"{str(record.msg).removesuffix(_HOSTS_SETTING)} to GRIDCAST_HOSTS."
        return super().filter(record)


def without_ping_keys(text: str) -> str:
    """Return *text* with the beginning only of each ping key in it."""
    return _PING_KEY.sub(r"\1...", text)


class LineFormatter(logging.Formatter):
    """Formats records, tracebacks included, of bounded length and without the ping keys in addresses."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        record.message = clipped(record.message, MOST_MESSAGE)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802  # logging's name
        """Return the traceback: its end, with the exception, if it is too long."""
        lines = [clipped(line, _MOST_LINE) for line in super().formatException(ei).splitlines()]
        if len(lines) <= _MOST_LINES:
            return "\n".join(lines)
        kept = lines[-_MOST_LINES:]
        return "\n".join([lines[0], f"  ... {len(lines) - 1 - len(kept)} lines ...", *kept])

    def format(self, record: logging.LogRecord) -> str:
        return without_ping_keys(super().format(record))


class Refusals(logging.Filter):
    """Log a request that was refused (4xx) as one line, with the reason instead of a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        status = getattr(record, "status_code", 0)
        if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and record.exc_info:
            reason = " ".join(str(record.exc_info[1]).split())
            record.exc_info = None
            record.msg, record.args = f"{record.getMessage()}{f': {reason}' if reason else ''}", ()
        return True


class BusyAnswers(OneAMinute):
    """Keep one record a minute of the answers that many clients get at once; other records stay."""

    def filter(self, record: logging.LogRecord) -> bool:
        return getattr(record, "status_code", None) not in _FREQUENT or super().filter(record)
