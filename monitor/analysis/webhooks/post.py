"""Post a message to a checked address of its destination, within a time limit."""

from __future__ import annotations

import http
import ssl
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from django.conf import settings

from monitor.analysis.webhooks import signature
from monitor.analysis.webhooks.destination import HIDDEN
from monitor.core.egress.addresses import InternalAddress, Resolve, resolve
from monitor.core.egress.bounds import WEBHOOK
from monitor.core.egress.client import EgressAnswer, EgressClient, verified_context
from monitor.core.egress.errors import EgressError
from monitor.core.egress.target import EgressTarget
from monitor.core.retry_after import MAY_ASK, retry_after_seconds

_ANSWER_BYTES = 200


class NotAccepted(Exception):
    """The receiver has not accepted the message.

    Attributes:
        status: that of its answer; None without an answer.
        retry_seconds: for how long it asks to be left alone; None if it does not ask.
    """

    def __init__(self, message: str, status: int | None = None, retry_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_seconds = status, retry_seconds

    @property
    def is_gone(self) -> bool:
        """Whether the receiver says that it never wants another message."""
        return self.status == http.HTTPStatus.GONE


@dataclass(frozen=True)
class Poster:
    """Posts messages.

    Attributes:
        allowed: hosts that may be internal; see ``check_addresses``.
        context: verifies the certificates of receivers.
        clock: returns Unix time.
    """

    allowed: Collection[str] = field(default_factory=lambda: settings.GRIDCAST_INTERNAL_WEBHOOK_HOSTS)
    resolve: Resolve = resolve
    context: Callable[[], ssl.SSLContext] = verified_context
    clock: Callable[[], float] = time.time
    seconds: float = WEBHOOK.seconds

    def post(self, to: EgressTarget, message: str, body: bytes, keys: Sequence[bytes]) -> None:
        """Return when the receiver has answered 2xx to *body*, signed by *keys*, with the id *message*.

        Raises:
            NotAccepted: the message says why; it does not contain the path of the URL.
        """
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "gridcast",
            **signature.headers(message, int(self.clock()), body, keys),
        }
        bounds = replace(WEBHOOK, seconds=self.seconds)
        client = EgressClient(bounds, self.allowed, self.resolve, self.context)
        try:
            answer = client.send("POST", to, headers, body)
        except InternalAddress as error:
            raise NotAccepted(
                f"cannot post to {to.origin}: {error}: add the host to GRIDCAST_INTERNAL_WEBHOOK_HOSTS if"
                " webhooks may go there"
            ) from None
        except EgressError as error:
            raise NotAccepted(f"cannot post to {error}") from None
        if not 200 <= answer.status < 300:
            retry_after = answer.headers.get("retry-after", "")
            retry_seconds = (
                retry_after_seconds(retry_after, self.clock()) if answer.status in MAY_ASK else None
            )
            reason = f"{to.origin} answered {answer.status}{_reason(answer, to.path)}"
            raise NotAccepted(reason, answer.status, retry_seconds)


def _reason(answer: EgressAnswer, path: str) -> str:
    """Return the beginning of the text, or where a redirect leads; receivers repeat the *path* in errors."""
    location = answer.headers.get("location")
    if location and 300 <= answer.status < 400:
        to = _without(path, location)[:_ANSWER_BYTES]
        return f", a redirect to {to!r}, which is not followed"
    whole = answer.body[: _ANSWER_BYTES + len(path)].decode(errors="replace")
    text = " ".join(_without(path, whole)[:_ANSWER_BYTES].split())
    return f": {text}" if text else ""


def _without(path: str, text: str) -> str:
    """Return *text* without the *path* of a URL, with and without its query."""
    for part in (path, path.partition("?")[0], path.rstrip("/")):
        text = text.replace(part, f"/{HIDDEN}") if len(part) > 1 else text
    return text
