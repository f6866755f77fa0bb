"""An HTTP POST of JSON, signed if the rule names a secret."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import os
import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlsplit

from monitor.alerts.channels.base import InvalidOptions, Message, NotDelivered

SIGNATURE = "X-Gridcast-Signature"
_VARIABLES = re.compile(r"GRIDCAST_WEBHOOK_[A-Z0-9_]+")  # other variables may hold secrets of the service
_TIMEOUT_SECONDS = 10.0
_ANSWER_BYTES = 200
_CONNECTIONS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class Notifier:
    """Posts the message to the http or https address in the option *url*.

    The option *secret_variable* names an environment variable that contains a key. If it is set, the header
    ``X-Gridcast-Signature: sha256=<hex>`` has the HMAC-SHA256 of the body with this key.

    Only a status of 2xx is a delivery. Redirections are not followed: they may lead to any host.
    """

    option_types: ClassVar[Mapping[str, str]] = {"url": "str", "secret_variable": "str"}

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._url = _checked(options.get("url", ""))
        self._variable = options.get("secret_variable", "")
        if self._variable and not _VARIABLES.fullmatch(self._variable):
            raise InvalidOptions(
                f"expected a name such as GRIDCAST_WEBHOOK_SECRET, got {self._variable!r}", "secret_variable"
            )

    def send(self, message: Message) -> None:
        body = _content(message)
        headers = {"Content-Type": "application/json", "User-Agent": "gridcast", **self._signature(body)}
        where = f"{self._url.scheme}://{self._url.netloc}"
        try:
            status, answer = self._post(body, headers)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotDelivered(f"cannot post to {where}: {str(error) or type(error).__name__}") from None
        if not 200 <= status < 300:
            raise NotDelivered(f"{where} answered {status}{answer}")

    def _post(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        """Send the request; return the status and the beginning of the body of the answer."""
        connect = _CONNECTIONS[self._url.scheme]
        host, port = self._url.hostname or "", self._url.port
        with contextlib.closing(connect(host, port, timeout=_TIMEOUT_SECONDS)) as connection:
            query = f"?{self._url.query}" if self._url.query else ""
            connection.request("POST", f"{self._url.path or '/'}{query}", body, headers)
            answer = connection.getresponse()
            location = answer.headers.get("Location")
            if location and 300 <= answer.status < 400:
                return answer.status, f", a redirect to {location[:_ANSWER_BYTES]!r}, which is not followed"
            text = " ".join(answer.read1(_ANSWER_BYTES).decode(errors="replace").split())
            return answer.status, f": {text}" if text else ""

    def _signature(self, body: bytes) -> dict[str, str]:
        if not self._variable:
            return {}
        secret = os.environ.get(self._variable)
        if not secret:
            raise NotDelivered(f"no secret to sign with: {self._variable} is not set")
        return {SIGNATURE: f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"}


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in _CONNECTIONS and parts.hostname and parts.port != 0
    except ValueError:  # an invalid port
        sound = False
    if not sound or not url.isprintable() or not url.isascii() or " " in url:
        raise InvalidOptions(f"expected a URL such as https://hooks.example.org/gridcast, got {url!r}", "url")
    if "@" in parts.netloc:
        raise InvalidOptions("expected a URL without a password; use secret_variable instead", "url")
    return parts


def _content(message: Message) -> bytes:
    content = {
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
    }
    return json.dumps(content).encode()
