"""What one client may cost the web server: deadlines, rates and bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

MEBIBYTE = 1024 * 1024
MOST_BODY_BYTES = 8 * MEBIBYTE  # the largest batch of reports


@dataclass(frozen=True)
class TransferPace:
    """The slowest accepted transfer: *bytes_per_second* on average after the first *grace_seconds*.

    No transfer may last longer than *most_seconds*.
    """

    grace_seconds: float
    bytes_per_second: float
    most_seconds: float = math.inf

    def is_too_slow(self, seconds: float, transferred_bytes: int) -> bool:
        allowed = self.grace_seconds + transferred_bytes / self.bytes_per_second
        return seconds > min(allowed, self.most_seconds)


@dataclass(frozen=True)
class Limits:
    """The limits of a web process.

    Attributes:
        head_seconds: from the first byte of a request (of a new connection: from its start) to the end of
            its headers.
        body: the pace of a request's body.
        answer: the pace of an answer, while the client keeps it waiting.
        most_line_bytes: the request line.
        most_head_bytes: request line and headers together.
        most_body_bytes: a body, decoded.
        most_chunks: of a chunked body.
        most_waiting_bytes: of an answer in parts. More parts are computed after the client has read.
        most_buffered_bytes: of all connections together; the oldest are ended beyond that.
        most_surplus: connections of one address beyond its limit that wait to be refused; the newest stay.
        surplus_seconds: until such a connection is refused though it has sent no request.
        lingering_seconds: how long a closed connection reads on, so that the client gets its answer.
        check_seconds: between two checks of the deadlines.
        grown_seconds: how long a process may exceed its memory before it is replaced.
    """

    head_seconds: float = 15.0
    body: TransferPace = TransferPace(20.0, 1024.0, most_seconds=300.0)
    answer: TransferPace = TransferPace(60.0, 1024.0)
    most_line_bytes: int = 8 * 1024
    most_head_bytes: int = 64 * 1024
    most_body_bytes: int = MOST_BODY_BYTES
    most_chunks: int = 65_536
    most_waiting_bytes: int = 8 * MEBIBYTE
    most_buffered_bytes: int = 256 * MEBIBYTE
    most_surplus: int = 10
    surplus_seconds: float = 1.0
    lingering_seconds: float = 5.0
    check_seconds: float = 1.0
    grown_seconds: float = 10.0
