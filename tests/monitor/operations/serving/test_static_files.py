"""The web server that gridcast starts sends static files compressed, under names that browsers keep."""

from __future__ import annotations

import re

import pytest

from monitor.operations.serving.services import GUNICORN
from tests.monitor.operations.web_server.clients import Server, serving

REQUEST = "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip, br\r\nConnection: close\r\n\r\n"


def headers(server: Server, path: str) -> str:
    head, _, _ = server.answers(REQUEST.format(path=path).encode()).partition(b"\r\n\r\n")
    return head.decode().lower()


@pytest.mark.nightly
def test_static_files_are_compressed_and_kept_for_ever_by_browsers() -> None:
    with serving(GUNICORN, "monitor.wsgi") as server:
        page = server.answers(
            b"GET /login/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ).decode()
        (style,) = re.findall(r"/static/monitor/base\.\w{12}\.css", page)
        sent = headers(server, style)
        assert "content-encoding: br" in sent
        assert "immutable" in sent
        assert "content-encoding: gzip" in headers(server, "/login/")
