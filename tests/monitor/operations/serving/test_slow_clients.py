"""The web server that gridcast starts keeps answering while slow clients are attached."""

from __future__ import annotations

from contextlib import ExitStack

import yaml

from monitor.core.env import ROOT
from monitor.operations.serving.services import GUNICORN
from tests.monitor.operations.web_server.clients import serving, slow_clients

LOGIN = b"POST /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nusername="
REPORTS = (
    b"POST /api/v1/reports HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer gcast_1\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
SCRIPT = b"GET /static/vendor/plotly/plotly-basic.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_forty_slow_clients_of_each_kind_do_not_silence_the_service() -> None:
    unlimited = {"GRIDCAST_PROXIES": "127.0.0.1"}  # all have one address
    with serving(GUNICORN, "monitor.wsgi", unlimited) as server, ExitStack() as stack:
        for request in (LOGIN, REPORTS):
            stack.enter_context(slow_clients(server, request))
        stack.enter_context(slow_clients(server, SCRIPT, reads_bytes=4096))
        assert server.ask("/healthz").status == 200
        assert server.ask("/static/vendor/plotly/plotly-basic.min.js").status == 200
        assert server.ask("/api/v1/forecasts?series=circle").status == 401


def test_compose_runs_the_same_web_server() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    options = set(services["web"]["command"])
    assert {option for option in GUNICORN if option.startswith(("--worker", "--threads"))} <= options
