"""Read requests from the bytes that a client has sent so far, without waiting for more.

gunicorn's parsers decide what is a request. They run on complete input only: on a head that has ended, and
on a body whose framing its head declares.
"""

from __future__ import annotations

import io
from typing import Any, Protocol

from gunicorn.asgi.parser import ParseError, PythonProtocol
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.parser import RequestParser

from monitor.operations.web_server.limits import Limits
from monitor.operations.web_server.refusal import Refusal, refusal_of
from monitor.operations.web_server.request_rules import check_head

_LINE_END = b"\r\n"
_HEAD_END = b"\r\n\r\n"
_FRAMING = ("CONTENT-LENGTH", "TRANSFER-ENCODING", "TRAILER")


class UnreadBody(Protocol):
    """The body of a request, as far as it was received."""

    data: bytearray

    def take(self, received: bytearray) -> bool:
        """Take the bytes of the body from the front of *received*; return whether the body is complete.

        Raises:
            Refusal: the body is malformed, or larger than permitted.
        """


class RequestReader:
    """Turns the bytes of one connection into its requests, one after the other.

    Attributes:
        body_bytes: received bytes of the body of the current request.
        is_in_body: whether the head of the current request is complete and its body is not.
        wants_continue: whether the client waits for ``100 Continue`` before it sends the body.
    """

    def __init__(self, config: Any, peer: Any, limits: Limits) -> None:
        self._config, self._peer, self._limits = config, peer, limits
        self._received = bytearray()
        self._searched = 0  # bytes of a head in which its end was not found
        self._request: Any = None
        self._body: UnreadBody | None = None
        self.body_bytes = 0
        self.wants_continue = False

    @property
    def is_idle(self) -> bool:
        """Return whether no byte of a further request was received."""
        return self._request is None and not self._received

    @property
    def is_in_body(self) -> bool:
        return self._request is not None

    @property
    def held_bytes(self) -> int:
        return len(self._received) + (len(self._body.data) if self._body else 0)

    def feed(self, data: bytes) -> None:
        self._received += data

    def take(self) -> Any:
        """Return the next request with its whole body; None if more bytes are needed.

        The body of the returned request is a file in memory with the length that its headers declare, even
        if the client sent it in chunks.

        Raises:
            Refusal: the request is malformed or exceeds a limit; no further request can be read.
        """
        if self._request is None and not self._take_head():
            return None
        before = len(self._received)
        body: UnreadBody = self._body  # type: ignore[assignment]  # set with the request
        is_complete = body.take(self._received)
        self.body_bytes += before - len(self._received)
        if not is_complete:
            return None
        request, self._request, self._body = self._request, None, None
        self.wants_continue = False
        return _with_body(request, bytes(body.data))

    def _take_head(self) -> bool:
        """Parse the head of the next request if it is complete; return whether it is."""
        self._check_line()
        end = self._received.find(_HEAD_END, max(self._searched - len(_HEAD_END) + 1, 0))
        most = self._limits.most_head_bytes
        if (len(self._received) if end < 0 else end) > most:
            raise Refusal(431, "too_large", f"expected at most {most} bytes of headers, got more")
        self._searched = len(self._received)
        if end < 0:
            return False
        head = bytes(self._received[: end + len(_HEAD_END)])
        del self._received[: len(head)]
        self._searched = self.body_bytes = 0
        try:
            self._request = next(RequestParser(self._config, [head], self._peer))
        except (ParseException, NoMoreData, StopIteration) as error:
            raise refusal_of(error) from error
        check_head(self._request)
        self._body = self._body_of(head)
        # gunicorn would send it when the application starts, and then the body is complete.
        self.wants_continue = self._request._expected_100_continue  # noqa: SLF001
        self._request._expected_100_continue = False  # noqa: SLF001
        return True

    def _check_line(self) -> None:
        """Refuse a request line that is too long before its end arrives."""
        most = self._limits.most_line_bytes
        first = len(_LINE_END) if self._received.startswith(_LINE_END) else 0  # an empty line may precede it
        end = self._received.find(_LINE_END, first, first + most + len(_LINE_END))
        if end < 0 and len(self._received) >= first + most + len(_LINE_END):
            raise Refusal(414, "too_large", f"expected a request line of at most {most} bytes, got more")

    def _body_of(self, head: bytes) -> UnreadBody:
        headers = dict(self._request.headers)
        if "TRANSFER-ENCODING" in headers:
            return ChunkedBody(head, self._limits)
        length = int(headers.get("CONTENT-LENGTH", 0))
        if length > self._limits.most_body_bytes:
            raise _too_large(self._limits, str(length))
        return SizedBody(length)


class SizedBody:
    """A body of which the length is known."""

    def __init__(self, length: int) -> None:
        self.data = bytearray()
        self._length = length

    def take(self, received: bytearray) -> bool:
        wanted = self._length - len(self.data)
        self.data += received[:wanted]
        del received[:wanted]
        return len(self.data) == self._length


class ChunkedBody:
    """A body in chunks; *head* is the head of its request."""

    def __init__(self, head: bytes, limits: Limits) -> None:
        self.data = bytearray()
        self._limits = limits
        self._chunks_left = limits.most_chunks
        self._parser = PythonProtocol(on_body=self._add)
        self._feed(head)

    def take(self, received: bytearray) -> bool:
        self._feed(bytes(received))
        received[:] = self._parser.remaining()
        return bool(self._parser.is_complete)

    def _feed(self, data: bytes) -> None:
        self._chunks_left += 1  # a chunk may arrive in several parts
        try:
            self._parser.feed(data)
        except ParseError as error:
            raise Refusal(400, "malformed", f"the chunked body cannot be read: {error}") from error

    def _add(self, piece: bytes) -> None:
        self.data += piece
        self._chunks_left -= 1
        if len(self.data) > self._limits.most_body_bytes:
            raise _too_large(self._limits, "more")
        if self._chunks_left < 0:
            raise Refusal(413, "too_large", f"expected at most {self._limits.most_chunks} chunks, got more")


def _too_large(limits: Limits, length: str) -> Refusal:
    return Refusal(
        413, "too_large", f"expected a body of at most {limits.most_body_bytes} bytes, got {length}"
    )


def _with_body(request: Any, body: bytes) -> Any:
    """Return *request* with *body* in memory, and with the headers of a body of known length."""
    framing = {name for name, _ in request.headers}.intersection(_FRAMING)
    request.headers = [(name, value) for name, value in request.headers if name not in _FRAMING]
    if framing:
        request.headers.append(("CONTENT-LENGTH", str(len(body))))
    request.body = io.BytesIO(body)
    return request
