"""Every operation that takes a body takes it in chunks, too, as the web server hands it on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test.client import ClientHandler
from gunicorn.config import Config
from gunicorn.http import wsgi

from monitor.models import ApiToken, Reporter
from monitor.models.reporter import HOME
from monitor.models.token import SCOPES
from monitor.operations.web_server.limits import Limits
from monitor.operations.web_server.request_reader import RequestReader

CONTRACT = Path(__file__).parent / "data" / "openapi.json"
BODIES = (b'{"nothing": "of this name"}', b"[1, 2", b"")


@pytest.fixture
def token(db: None) -> str:
    home, _ = Reporter.objects.get_or_create(name=HOME)
    return ApiToken.objects.issue(User.objects.create_superuser("root"), "program", list(SCOPES), home)


def operations_with_a_body() -> Iterator[tuple[str, str, str]]:
    for path, operations in json.loads(CONTRACT.read_text())["paths"].items():
        for method, operation in operations.items():
            if "requestBody" in operation:
                (media_type, *_) = operation["requestBody"]["content"]
                yield method.upper(), path.replace("{", "").replace("}", ""), media_type


def answer(request: bytes) -> tuple[int, Any]:
    """Return the status and the body of the answer to the bytes of *request*."""
    reader = RequestReader(Config(), ("127.0.0.1", 1), Limits())
    reader.feed(request)
    received = reader.take()
    assert received is not None
    _, environ = wsgi.create(received, None, ("127.0.0.1", 1), ("127.0.0.1", 80), Config())
    response: Any = ClientHandler(enforce_csrf_checks=True)(environ)
    shown = json.loads(response.content)
    shown.pop("server_time", None)
    return response.status_code, shown


@pytest.mark.parametrize(("method", "path", "media_type"), list(operations_with_a_body()))
def test_a_chunked_body_gets_the_same_answer_as_one_of_known_length(
    token: str, method: str, path: str, media_type: str
) -> None:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: {media_type}\r\nX-Request-ID: same\r\n"
    ).encode()
    for body in BODIES:
        sized = answer(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        chunked = answer(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert chunked == sized
        assert sized[0] < 500
