"""A server for agents in one process: real HTTPS and real signatures, and a memory instead of the depot."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from monitor.testbed.middleware.pki import Authority
from reporters.remote import signing
from reporters.report import Report, from_json
from reporters.spool.receipts import Receipt, RecordRange
from reporters.spool.records import REPORT, Record, parse_parts
from tests.reporters.remote.assignments import sign
from tests.reporters.scripted_https import Connection, Request, scripted_server

Change = Callable[[dict[str, Any]], None]


@dataclass
class GridServer:
    """Answers exchanges with *assignment* and *requests*, and records with receipts.

    Attributes:
        refuse: called first for each request; returns whether it has answered.
        change: spoils the answer to an exchange, *change_receipt* the one to records.
        offset_seconds: of this server's clock.
    """

    method: str = "openssl"
    assignment: dict[str, Any] | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    refuse: Callable[[Connection, Request], bool] = lambda _connection, _request: False
    change: Change = lambda _answer: None
    change_receipt: Change = lambda _answer: None
    offset_seconds: float = 0.0
    port: int = 0
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    records: dict[tuple[uuid.UUID, int], Record] = field(default_factory=dict)
    _storing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def reports(self) -> list[Report]:
        """The stored reports, in the order of their records."""
        with self._storing:
            bodies = [record.body for record in self.records.values() if record.kind == REPORT]
        return [from_json(body) for body in bodies]

    @property
    def messages(self) -> list[str]:
        return [message["text"] for exchange in list(self.exchanges) for message in exchange["messages"]]

    def answer(self, connection: Connection, request: Request) -> None:
        if self.refuse(connection, request):
            return
        received_at = time.time() + self.offset_seconds
        if request.path.endswith("/exchange"):
            document = self._exchange(json.loads(request.body), received_at)
        else:
            document = self._records(gzip.decompress(request.body))
        connection.answer(200, json.dumps(document).encode())

    def _exchange(self, asked: dict[str, Any], received_at: float) -> dict[str, Any]:
        self.exchanges.append(asked)
        envelope = None
        if self.assignment is not None and asked["assignment"]["version"] != self.assignment["version"]:
            envelope = sign(self.assignment, method=self.method)
        answer: dict[str, Any] = {
            "received_at": received_at,
            "answered_at": received_at,
            "assignment": envelope,
            "requests": self.requests,
            "exchange_seconds": 5,
        }
        self.change(answer)
        return answer

    def _records(self, data: bytes) -> dict[str, Any]:
        parts = parse_parts(data)
        with self._storing:
            for part in parts:
                self.records.update({(part.chain, record.sequence): record for record in part.records})
        ranges = [
            RecordRange(
                part.chain, part.records[0].sequence, part.records[-1].sequence, part.records[-1].hash
            )
            for part in parts
        ]
        receipt = Receipt("ncsa", datetime.now(UTC), tuple(ranges)).to_document()
        answer: dict[str, Any] = {"receipt": sign(receipt, signing.RECEIPT, self.method)}
        self.change_receipt(answer)
        return answer


def key_of(request: Request) -> str:
    """Return the fingerprint of the key in the token of *request*."""
    payload = request.headers["Authorization"].split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["key"])


@contextlib.contextmanager
def grid_server(authority: Authority, server: GridServer) -> Iterator[GridServer]:
    """Serve until the context ends."""
    with scripted_server(authority, server.answer) as scripted:
        server.port = scripted.port
        yield server
