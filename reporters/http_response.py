"""Read the response of an HTTP/1.1 server from a socket: status, headers and a streamed body.

``http.client`` does so too, but loads the package ``email`` for the headers: more than a megabyte of memory
in the agent of a site, which runs for months.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping

_MAX_LINE_BYTES = 65536
_MAX_HEADERS = 100
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)(?: ([^\r\n]*))?\r?\n")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*?)[ \t]*\r?\n")
_FOLDED = re.compile(rb"[ \t]+([^\r\n]*?)[ \t]*\r?\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_WITHOUT_BODY = (204, 304)
_SWITCHING_PROTOCOLS = 101


class MalformedResponse(ValueError):
    """What the server sends is no response; the message quotes the line."""


class IncompleteResponse(Exception):
    """The connection ended in the middle of a response."""


class HttpResponse:
    """The response to a request of *method*, which has been sent on *connection*.

    The names of *headers* are in lower case; of several values of a name, the first counts. The constructor
    reads the head; it and ``read`` raise the errors of the socket and those of this module.
    """

    def __init__(self, connection: socket.socket, method: str) -> None:
        self._stream = connection.makefile("rb")
        try:
            self.status, self.reason = self._status()
            self.headers = self._headers()
            self._is_chunked, self._left_bytes = self._framing(method)
            self._has_chunk = False
        except BaseException:
            self._stream.close()
            raise

    @property
    def is_empty(self) -> bool:
        """Whether the head says that no bytes follow."""
        return self._left_bytes == 0 and not self._is_chunked

    def read(self, most_bytes: int) -> bytes:
        """Return what arrives next of the body, at most *most_bytes*; nothing at its end."""
        if self._is_chunked and self._left_bytes == 0:
            self._begin_chunk()
        left = most_bytes if self._left_bytes is None else min(most_bytes, self._left_bytes)
        if not left:
            return b""
        piece = self._stream.read1(left)
        if self._left_bytes is None:
            return piece
        if not piece:
            raise IncompleteResponse
        self._left_bytes -= len(piece)
        return piece

    def close(self) -> None:
        self._stream.close()

    def _status(self) -> tuple[int, str]:
        """Return the status and its reason, after interim responses."""
        while True:
            line = self._stream.readline(_MAX_LINE_BYTES)
            if not line:
                raise MalformedResponse("the server closed the connection without a response")
            match = _STATUS_LINE.fullmatch(line)
            if match is None:
                raise MalformedResponse(_shown(line))
            status = int(match[1])
            if status >= 200 or status == _SWITCHING_PROTOCOLS:
                return status, (match[2] or b"").decode("latin-1").strip()
            self._headers()

    def _headers(self) -> Mapping[str, str]:
        """Return the headers up to the empty line."""
        headers: list[tuple[str, str]] = []
        for _ in range(_MAX_HEADERS + 1):
            line = self._line()
            if line in (b"\r\n", b"\n"):
                return dict(reversed(headers))
            header, folded = _HEADER.fullmatch(line), _FOLDED.fullmatch(line)
            if header is not None:
                headers.append((header[1].decode().lower(), header[2].decode("latin-1")))
            elif folded is not None and headers:
                name, value = headers.pop()
                headers.append((name, f"{value} {folded[1].decode('latin-1')}"))
            else:
                raise MalformedResponse(_shown(line))
        raise MalformedResponse(f"more than {_MAX_HEADERS} headers")

    def _framing(self, method: str) -> tuple[bool, int | None]:
        """Return whether the body comes in chunks, and its length, None if only its end tells."""
        is_tunnel = method == "CONNECT" and 200 <= self.status < 300
        if method == "HEAD" or is_tunnel or self.status in _WITHOUT_BODY or self.status < 200:
            return False, 0
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            return True, 0
        length = self.headers.get("content-length")
        if length is None:
            return False, None
        if not (length.isascii() and length.isdigit() and len(length) <= 18):
            raise MalformedResponse(f"Content-Length: {length}")
        return False, int(length)

    def _begin_chunk(self) -> None:
        if self._has_chunk and self._line() != b"\r\n":
            raise MalformedResponse("a chunk is longer than announced")
        self._has_chunk = True
        line = self._line()
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise MalformedResponse(_shown(line))
        self._left_bytes = int(match[1], 16)
        if self._left_bytes == 0:
            self._headers()  # trailers, which change nothing
            self._is_chunked = False

    def _line(self) -> bytes:
        line = self._stream.readline(_MAX_LINE_BYTES)
        if line.endswith(b"\n"):
            return line
        if len(line) < _MAX_LINE_BYTES:
            raise IncompleteResponse
        raise MalformedResponse(f"a line of more than {_MAX_LINE_BYTES} bytes")


def _shown(line: bytes) -> str:
    return line.rstrip(b"\r\n")[:100].decode("latin-1")
