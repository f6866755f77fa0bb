"""Filters of log records."""

from __future__ import annotations

import logging

_BUSY = (503, 507)  # answers that ask the client to try again


class BusyAnswers(logging.Filter):
    """Turn the records of busy answers into warnings of one line; those of other failures stay errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", None) in _BUSY:
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
            record.exc_info = None
        return True
