"""Parse a server's progress report on a third-party copy (HTTP-TPC of the WLCG).

The body of the response has markers ("Perf Marker ... Stripe Bytes Transferred: 1048576 ... End") and ends
with the result, "success: Created" or "failure: reason". The server sends the HTTP status before the copy, so
the status does not tell the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONGEST_LINE_BYTES = 16384
_TAIL_CHARACTERS = 4000
_INDEX = re.compile(r"Stripe Index:\s*(\d+)", re.ASCII | re.IGNORECASE)
_BYTES = re.compile(r"Stripe Bytes Transferred:\s*(\d{1,18})", re.ASCII | re.IGNORECASE)
_VERDICT = re.compile(r"(?P<success>success)|(?P<failure>fail(?:ure|ed)|aborted|error)\b", re.IGNORECASE)


class CopyReport:
    """Parses the body of a response, which ``feed`` takes piece by piece. Keeps only the end of the body.

    Each of *secrets* is replaced by "[secret]".
    """

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = secrets
        self.tail = ""
        self.failure = ""  # the server's reason for a failure
        self.succeeded = False  # whether the server reported success
        self._stripe = 0
        self._stripes: dict[int, int] = {}
        self._line = b""
        self.first_line = ""
        self.last_line = ""

    @property
    def transferred_bytes(self) -> int:
        """The bytes transferred according to the latest markers."""
        return sum(self._stripes.values())

    def feed(self, piece: bytes) -> None:
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._take(self._line + line)
            self._line = b""
        self._line = (self._line + rest)[:_LONGEST_LINE_BYTES]

    def end(self) -> None:
        """Parse the last line of the body, which may lack a newline. Call this after the last ``feed``."""
        self._take(self._line)
        self._line = b""

    def _take(self, raw: bytes) -> None:
        line = raw[:_LONGEST_LINE_BYTES].decode("utf-8", "replace").strip()
        for secret in self._secrets:
            line = line.replace(secret, "[secret]")
        if not line:
            return
        self.first_line, self.last_line = self.first_line or line, line
        self.tail = (self.tail + line + "\n")[-_TAIL_CHARACTERS:]
        if index := _INDEX.match(line):
            self._stripe = int(index[1][:9])
        elif arrived := _BYTES.match(line):
            self._stripes[self._stripe % 1024] = int(arrived[1])
        elif verdict := _VERDICT.match(line):
            self.succeeded = self.succeeded or bool(verdict["success"])
            self.failure = self.failure or (line if verdict["failure"] else "")
