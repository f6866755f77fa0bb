"""Requests that name another charset than UTF-8, which strangers may send to any path."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import RequestFactory

from monitor.web.pages.http.utf8 import Utf8Handler, Utf8Request

CHARSETS = ["rot13", "zlib", "hex", "undefined", "punycode", "idna", "utf-16", "unicode_escape", "none"]
PART = b'--x\r\nContent-Disposition: form-data; name="login"\r\n\r\nada\r\n--x--\r\n'
FORM = "application/x-www-form-urlencoded"
TYPES = ["application/json", "text/plain", FORM, "multipart/form-data; boundary=x"]


def status(method: str, path: str, content_type: str) -> int:
    """Return the status of the answer of the web application, as the web server calls it."""
    body = PART if method == "POST" else b""
    environ = RequestFactory().generic(method, f"{path}?limit=1", body).environ
    statuses: list[str] = []

    def start(line: str, *_: object) -> Callable[[bytes], object]:
        statuses.append(line)
        return len

    Utf8Handler()({**environ, "CONTENT_TYPE": content_type}, start).close()
    return int(statuses[0][:3])


@pytest.mark.parametrize("media_type", TYPES)
@pytest.mark.parametrize(
    "path", ["/login/", "/nosuch", "/runs/", "/metrics", "/api/v1/runs", "/api/v1/openapi.json"]
)
def test_a_charset_changes_no_answer(db: None, path: str, media_type: str) -> None:
    for method in ("GET", "POST"):
        usual = status(method, path, media_type)
        assert usual < 500
        named = {charset: status(method, path, f"{media_type}; charset={charset}") for charset in CHARSETS}
        assert named == dict.fromkeys(CHARSETS, usual), method


def test_parameters_keep_their_names() -> None:
    environ = RequestFactory().get("/runs/?site=ncsa").environ
    request = Utf8Request({**environ, "CONTENT_TYPE": "text/plain; charset=utf-16"})
    assert request.GET.dict() == {"site": "ncsa"}
