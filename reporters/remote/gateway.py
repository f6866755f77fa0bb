"""The agent's two requests: the exchange, and records; with a token, and a second try after a wrong clock.

Errors::

    ServerError         as in ``server.py``; among them:
    `-- Revoked         the server no longer accepts this reporter's key
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from reporters.remote.clock import ExchangeTimes, SiteClock
from reporters.remote.identity import ReporterIdentity
from reporters.remote.server import Answer, ServerClient, ServerRefused
from reporters.remote.token import TokenSource
from reporters.spool.lanes import Lane

RECORDS_TYPE = "application/vnd.gridcast.records"
_WRONG_CLOCK = ("token_expired", "token_not_yet_valid")
_REVOKED = "revoked"
_HALF_SECOND = 0.5  # the server may cut its time to whole seconds
_COMPRESSION = 6
_GZIP = 16  # added to the window, makes zlib write the format of gzip, without the modules of its package


class Revoked(ServerRefused):
    """The server no longer accepts this reporter's key."""


class Gateway:
    """Sends the requests of the reporter *identity*. Thread-safe."""

    def __init__(
        self, identity: ReporterIdentity, client: ServerClient, tokens: TokenSource, clock: SiteClock
    ) -> None:
        self._reporter, self._client, self._tokens, self._clock = identity.reporter, client, tokens, clock

    def exchange(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send *request*, to which the time is added, and learn the offset of the clocks; return the answer.

        Raises:
            ServerError: there is no valid answer.
            SigningError: no token can be signed.
        """
        sent: list[float] = []

        def body() -> bytes:  # of each try: it has the time
            sent.append(self._clock.steady())
            return exchange_body(request, self._clock.wall_seconds())

        answer = self._post("exchange", body, {"Content-Type": "application/json"})
        arrived, document = self._clock.steady(), answer.document()
        received, answered = _number(document, "received_at"), _number(document, "answered_at")
        if received is not None and answered is not None:
            self._clock.add(ExchangeTimes(sent[-1], received, answered, arrived))
        return document

    def records(self, body: bytes, *, is_backlog: bool = False) -> dict[str, Any]:
        """Send *body*, parts of records as the protocol describes; return the answer.

        The server gives fresh records precedence over a backlog.

        Raises:
            ServerError: there is no answer with a receipt.
            SigningError: no token can be signed.
        """
        packed = _gzipped(body)
        headers = {"Content-Type": RECORDS_TYPE, "Content-Encoding": "gzip"}
        if is_backlog:
            headers["Gridcast-Lane"] = Lane.BACKLOG.value
        return self._post("records", lambda: packed, headers).document()

    def _post(self, operation: str, body: Callable[[], bytes], headers: Mapping[str, str]) -> Answer:
        sent = self._clock.steady()
        try:
            return self._post_once(operation, body, headers)
        except ServerRefused as error:
            has_new_key = self._tokens.discard()
            if error.code == _REVOKED and not has_new_key:
                raise _revoked(error) from None
            if error.code != _REVOKED and (error.code not in _WRONG_CLOCK or not self._learn(error, sent)):
                raise
        try:
            return self._post_once(operation, body, headers)
        except ServerRefused as error:
            raise (_revoked(error) if error.code == _REVOKED else error) from None

    def _post_once(self, operation: str, body: Callable[[], bytes], headers: Mapping[str, str]) -> Answer:
        token = self._tokens.token()
        path = f"{self._reporter}/{operation}"
        return self._client.post(path, body(), {**headers, "Authorization": f"Bearer {token}"})

    def _learn(self, error: ServerRefused, sent: float) -> bool:
        """Set the clock by the time in the server's refusal; return whether there was one."""
        server_time = _number(error.fields, "server_time")
        if server_time is None:
            return False
        middle = server_time + _HALF_SECOND
        arrived = self._clock.steady() + _HALF_SECOND
        self._clock.add(ExchangeTimes(sent - _HALF_SECOND, middle, middle, arrived))
        return True


def _gzipped(body: bytes) -> bytes:
    # No larger than the body: the largest window takes 256 KiB, which the process keeps.
    window = min(max(len(body).bit_length(), 9), zlib.MAX_WBITS)
    compressor = zlib.compressobj(_COMPRESSION, zlib.DEFLATED, _GZIP + window, window - 7)
    return compressor.compress(body) + compressor.flush()


def _revoked(error: ServerRefused) -> Revoked:
    return Revoked(str(error), error.status, error.code, error.fields)


def exchange_body(request: Mapping[str, Any], sent_at: float) -> bytes:
    """Return the bytes of an exchange that is sent at *sent_at*, in seconds since 1970."""
    return json.dumps({"sent_at": sent_at, **request}).encode()


def _number(fields: Mapping[str, Any], name: str) -> float | None:
    value = fields.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
