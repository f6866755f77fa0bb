"""A line in the log of the control worker."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from monitor.analysis.alerts.channels.base import Message

logger = logging.getLogger(__name__)


class Notifier:
    option_types: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: Mapping[str, Any]) -> None:
        pass

    def send(self, message: Message) -> None:
        level = logging.INFO if message.event == "closed" else logging.WARNING
        logger.log(level, "%s %s: %s: %s", message.rule, message.event, message.watched, message.text)
