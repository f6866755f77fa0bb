"""Fuzz: whatever a client sends, no operation answers with an internal error, and nothing is leaked.

``GRIDCAST_FUZZ_REQUESTS`` sets the number of requests: 1,000 by default, 100,000 in ``make fuzz``.
``GRIDCAST_FUZZ_SEED`` sets the seed.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.handlers.base import BaseHandler
from django.db import transaction
from django.http import HttpRequest
from django.test import RequestFactory

from tests.monitor.web.api.example_grid import example_grid
from tests.monitor.web.api.openapi_document import openapi_document

REQUESTS = int(os.environ.get("GRIDCAST_FUZZ_REQUESTS", "1000"))
SEED = int(os.environ.get("GRIDCAST_FUZZ_SEED", "1"))
# In the second half of the requests. The allocator holds up to three bodies of 3 MB more or less; 1 kB for
# each of 100,000 requests are 49 MiB.
MOST_LEAKED_BYTES = 24 * 1024 * 1024
MOST_LEAKED_BLOCKS = 10_000 + REQUESTS // 10  # of up to 512 bytes; a small part fills caches
METHODS = ("GET", "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY")
TEXTS = (
    *("", " ", "circle-main", "ncsa", "total.seconds", "home", "a,b", "1", "0", "-1", "1.5", "1e999", "nan"),
    *("9" * 400, "x" * 5000, "\x00", "é\u202e🙂", "\ud800", "../../etc/passwd", "' OR 1=1 --", "%s%n"),
    *("{}", "[]", "true", "null", "00000000-0000-0000-0000-000000000000", "2026-03", "7d", "site", "pause"),
    *("2026-03-01T12:00:00Z", "2026-13-01T12:00:00Z", "2026-03-01T12:00:00", "0001-01-01T00:00:00Z"),
    "9999-12-31T23:59:59-14:00",
)
VALUES: tuple[Any, ...] = (
    *TEXTS,
    None,
    True,
    0,
    -1,
    10**30,
    1e300,
    [],
    {},
    [[]],
    ["a"] * 300,
    {"a": {"a": {"a": 1}}},
)
MALFORMED = (b"", b"{", b"[" * 5000, b"\xff\xfe", b"nul", b'{"a": NaN}', b'{"a": 1, "a": 2}')
BODIES = (*MALFORMED, b"0", b'"x"', b"x" * 3_000_000)
TYPES = (
    "application/json",
    "application/json",
    "",
    "text/plain",
    "multipart/form-data",
    "application/x-ndjson",
)
HEADERS = {
    "accept-encoding": ("gzip", "zstd;q=x", "*;q=0", "," * 500),
    "if-none-match": ("*", '"a"', "W/", "," * 500),
    "x-request-id": ("a", "\n", "x" * 500),
    "content-encoding": ("gzip", "zstd", "br"),
    "range": ("bytes=0-1",),
    "accept": ("text/html", "nothing"),
}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes
    content_type: str
    headers: dict[str, str] = field(default_factory=dict)


class DirectCaller:
    """Calls the service with all its middleware. Django's test client keeps a kilobyte of each request."""

    def __init__(self, token: str) -> None:
        self._requests = RequestFactory(headers={"authorization": f"Bearer {token}"})
        self._handler = BaseHandler()
        self._handler.load_middleware()

    def send(self, request: Request) -> Any:
        """Send *request* in a transaction of its own, that is rolled back: each meets the same grid."""
        arguments = (request.method, request.path, request.body, request.content_type)
        with transaction.atomic():
            answer: Any = self._handler.get_response(
                self._requests.generic(*arguments, headers=request.headers)
            )
            if answer.streaming:
                b"".join(answer.streaming_content)
            transaction.set_rollback(True)
        return answer


@pytest.fixture
def caller(db: None) -> Iterator[DirectCaller]:
    token = example_grid()
    logging.disable(logging.CRITICAL)
    yield DirectCaller(token)
    logging.disable(logging.NOTSET)


def test_no_request_causes_an_internal_error_or_a_leak(caller: DirectCaller) -> None:
    chance = random.Random(SEED)
    answers: Counter[int] = Counter()
    of_other_tests = held_memory().requests
    for number in range(REQUESTS):
        request = drawn(chance)
        answer = caller.send(request)
        answers[answer.status_code] += 1
        where = f"seed {SEED}, number {number}: {request}"[:2000]
        assert answer.status_code < 500, f"{where}\n{answer.content[:500]!r}"
        if answer.status_code >= 400:
            assert answer["content-type"] == "application/problem+json", where
        del answer
        if number == REQUESTS // 2:  # caches are filled
            before = held_memory()
    assert {200, 404, 422} <= answers.keys()
    after = held_memory()
    print(f"seed {SEED}: {sorted(answers.items())}, {before} at half, {after} at the end")
    assert after.requests <= of_other_tests
    assert after.blocks - before.blocks < MOST_LEAKED_BLOCKS
    assert after.resident_bytes - before.resident_bytes < MOST_LEAKED_BYTES


@dataclass(frozen=True)
class HeldMemory:
    requests: int
    blocks: int
    resident_bytes: int


def held_memory() -> HeldMemory:
    gc.collect()
    requests = sum(issubclass(type(item), HttpRequest) for item in gc.get_objects())
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return HeldMemory(requests, sys.getallocatedblocks(), pages * os.sysconf("SC_PAGE_SIZE"))


def drawn(chance: random.Random) -> Request:
    path, operations = chance.choice(PATHS)
    method, operation = chance.choice(operations)
    names = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"]
    query = "&".join(
        f"{name}={encoded(chance.choice(TEXTS))}"
        for name in chance.choices(
            [*names, "fields", "limit", "unknown"], k=chance.choice((0, 0, 1, 1, 2, 4))
        )
    )
    if chance.random() < 0.1:
        method = chance.choice(METHODS)
    headers = {name: chance.choice(values) for name, values in HEADERS.items() if chance.random() < 0.05}
    body = drawn_body(chance, operation) if method not in {"GET", "HEAD"} else b""
    return Request(method, f"{filled(chance, path)}?{query}", body, chance.choice(TYPES), headers)


def filled(chance: random.Random, path: str) -> str:
    """Return *path* with a value for each parameter: most often one that exists."""
    names = {"series": "circle-main", "metric": "total.seconds", "reporter": "home", "kind": "site"}
    parts = [
        encoded(names.get(part[1:-1], "ncsa") if chance.random() < 0.7 else chance.choice(TEXTS) or "-")
        if part.startswith("{")
        else part
        for part in path.split("/")
    ]
    return "/".join(parts).replace("%7Bpart%7D", "last")


def drawn_body(chance: random.Random, operation: Any) -> bytes:
    """Return a body: of its example, with other values for some keys, or anything."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = content.get("example")
    if chance.random() < 0.3:
        return chance.choice(BODIES)
    is_list = isinstance(example, list)
    item = (example[0] if is_list else example) or {}
    keys = [*item, *chance.choices(("reason", "name", "text", "job", "x"), k=1)]
    changed = {key: chance.choice(VALUES) for key in keys if chance.random() < 0.4}
    document = {**item, **changed}
    return json.dumps([document] if is_list else document).encode()


def encoded(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


PATHS = [(path, list(operations.items())) for path, operations in openapi_document()["paths"].items()]
