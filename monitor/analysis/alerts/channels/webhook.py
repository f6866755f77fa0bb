"""An HTTP POST of JSON, signed if the rule names a secret."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from monitor.analysis.alerts.channels.base import InvalidOptions, Message, NotDelivered
from monitor.analysis.webhooks import destination, signature
from monitor.analysis.webhooks.destination import InvalidUrl
from monitor.analysis.webhooks.post import NotAccepted, Poster
from monitor.analysis.webhooks.signature import VARIABLES, InvalidSecret


class Notifier:
    """Posts the message to the http or https address in the option *url*.

    The option *secret_variable* names an environment variable that contains secrets. If it is set, the
    headers are those of Standard Webhooks. Internal addresses are refused unless the settings allow the host.

    Only a status of 2xx is a delivery. Redirections are not followed: they may lead to any host.
    """

    option_types: ClassVar[Mapping[str, str]] = {"url": "str", "secret_variable": "str"}

    def __init__(self, options: Mapping[str, Any]) -> None:
        try:
            self._destination = destination.parse(options.get("url", ""))
        except InvalidUrl as error:
            raise InvalidOptions(str(error), "url") from None
        self._variable = options.get("secret_variable", "")
        if self._variable and not VARIABLES.fullmatch(self._variable):
            raise InvalidOptions(
                f"expected a name such as GRIDCAST_WEBHOOK_SECRET, got {self._variable!r}", "secret_variable"
            )

    def send(self, message: Message) -> None:
        try:
            keys = signature.secrets_in(self._variable) if self._variable else []
            Poster().post(self._destination, message.id, _content(message), keys)
        except InvalidSecret as error:
            raise NotDelivered(str(error)) from None
        except NotAccepted as error:
            raise NotDelivered(str(error), retry_seconds=error.retry_seconds, is_gone=error.is_gone) from None


def _content(message: Message) -> bytes:
    data = {
        "id": message.id,
        "event": message.event,
        "rule": message.rule,
        "series": message.series,
        "reporter": message.reporter,
        "text": message.text,
        "since": message.since.isoformat(),
        "at": message.at.isoformat(),
        "url": message.url,
        "incident": message.incident,
        "cause": message.cause,
        "open_alerts": message.open_alerts,
        "severity": message.severity,
    }
    content = {"type": f"alert.{message.event}", "timestamp": message.at.isoformat(), "data": data}
    return json.dumps(content).encode()
