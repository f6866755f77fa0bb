"""A client cannot write long lines into the logs of the web server."""

from __future__ import annotations

from pathlib import Path

from tests.monitor.operations.web_server.clients import gunicorn_with, serving
from tests.waiting import eventually

LONG = b"Zq7" * 1300  # of a request line and of a header; gunicorn accepts 4 KiB and 8 KiB
MOST_LINE = 2_600


def test_lines_of_the_logs_and_refusals_are_bounded(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = [f"--access-logfile={log}", f"--error-logfile={log}"]
    gunicorn = gunicorn_with("monitor.operations.web_server.worker.BufferedWorker", *options)
    with serving(gunicorn, "tests.monitor.operations.web_server.application:application") as server:
        head = b"GET /%b HTTP/1.1\r\nHost: a\r\n" % LONG
        fields = b"Referer: %b\r\nUser-Agent: %b\r\n\r\n" % (LONG, LONG)
        assert server.answers(head + fields).startswith(b"HTTP/1.1 200")
        malformed = server.answers(head + b"%b: 1\r\n" % (b"Zq7;" * 1900) + fields)
        assert malformed.startswith(b"HTTP/1.1 400")
        assert len(malformed) < MOST_LINE + 500
        assert eventually(lambda: b"Zq7" in log.read_bytes())
        lines = log.read_bytes().splitlines()
    assert any(line.count(b"Zq7") > 100 for line in lines)
    assert max(map(len, lines)) < MOST_LINE
