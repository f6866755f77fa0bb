"""Lines of gunicorn's access log: bounded, whatever the client sends as path, referrer and user agent."""

from __future__ import annotations

import logging
from typing import Any

from monitor.core.clipping import clipped

MOST_CHARACTERS = 500  # of a field


class ClippedFields:
    """The fields of a line, which gunicorn looks up by their letters."""

    def __init__(self, fields: Any) -> None:
        self._fields = fields

    def __getitem__(self, letter: str) -> str:
        return clipped(str(self._fields[letter]), MOST_CHARACTERS)


class ClipFields(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if record.args and not isinstance(record.args, tuple):
            record.args = ClippedFields(record.args)  # type: ignore[assignment]  # % asks for its items only
        return True
