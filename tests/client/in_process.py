"""The real application in this process, as what sends the requests of a client."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any
from urllib.parse import urlsplit

from django.test import Client as Browser

from gridcast_client import Request, Response

URL = "https://grid.example.org"


def application(request: Request, timeout_seconds: float) -> Response:
    """Answer *request* by the application, in the transaction of the test."""
    assert timeout_seconds > 0
    parts = urlsplit(request.url)
    answer = Browser().generic(
        request.method,
        f"{parts.path}?{parts.query}",
        request.body or b"",
        content_type=request.headers.get("Content-Type", ""),
        headers={name: text for name, text in request.headers.items() if name != "Content-Type"},
    )
    return Response(answer.status_code, {name.lower(): text for name, text in answer.items()}, answer.content)


class Answers:
    """Answers requests with what a test gives, in order; the last answer is repeated."""

    def __init__(self, *answers: Response | Exception | Callable[[Request], Response]) -> None:
        self.requests: list[Request] = []
        self.limits: list[float] = []
        self._answers = list(answers)

    def __call__(self, request: Request, timeout_seconds: float) -> Response:
        self.requests.append(request)
        self.limits.append(timeout_seconds)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise copy(answer)  # the client completes its message
        return answer if isinstance(answer, Response) else answer(request)


def problem(status: int, code: str, **headers: str) -> Response:
    """Return a problem; in the names of *headers*, an underscore is a hyphen."""
    body = f'{{"status": {status}, "code": "{code}", "detail": "because"}}'.encode()
    return Response(status, {name.replace("_", "-"): text for name, text in headers.items()}, body)


def document(text: str, status: int = 200) -> Response:
    return Response(status, {"content-type": "application/json"}, text.encode())


def pauses() -> tuple[list[float], dict[str, Any]]:
    """Return the pauses that a client makes, and the arguments with which it only notes them."""
    noted: list[float] = []
    return noted, {"sleep": noted.append, "jitter": lambda: 0.5}
