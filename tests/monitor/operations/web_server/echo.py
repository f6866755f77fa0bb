"""A WSGI application that answers what a request was: for any web server, and of none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

STATUSES = {"/empty": "204 No Content", "/unchanged": "304 Not Modified"}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer the request as JSON; some paths have other answers.

    ``/parts`` has an answer of unknown length, ``/empty`` and ``/unchanged`` none. ``/header?VALUE`` sends
    a header with the value, percent-encoded in the query.
    """
    path = environ["PATH_INFO"]
    if path in STATUSES:
        start_response(STATUSES[path], [("ETag", '"1"')])
        return []
    if path == "/parts":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return iter([b"one ", b"two"])
    headers = [("Content-Type", "application/json")]
    if path == "/header":
        headers.append(("X-Value", unquote(environ["QUERY_STRING"])))
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    answer = json.dumps(
        {
            "method": environ["REQUEST_METHOD"],
            "path": path,
            "query": environ.get("QUERY_STRING", ""),
            "host": environ.get("HTTP_HOST", ""),
            "protocol": environ["SERVER_PROTOCOL"],
            "body": body.decode("latin-1"),
            "headers": sorted(name for name in environ if name.startswith("HTTP_")),
        }
    ).encode()
    start_response("200 OK", [*headers, ("Content-Length", str(len(answer)))])
    return [answer]
