"""Read the bytes of a feed: a file, standard input, or an http or https address."""

from __future__ import annotations

import http
from pathlib import Path
from typing import BinaryIO

from monitor.core.egress.bounds import FEED
from monitor.core.egress.client import EgressClient
from monitor.core.egress.errors import EgressError
from monitor.core.egress.target import parse_target
from monitor.runs.maintenance.feeds.base import MAX_BYTES, InvalidFeed

STDIN = "-"
_SCHEMES = ("http://", "https://")


def is_url(location: str) -> bool:
    return location.lower().startswith(_SCHEMES)


def read_feed(location: str, stdin: BinaryIO) -> bytes:
    """Return the bytes at *location*, of a file at most one more than a feed may have.

    A redirect may lead to another host, unless that one is internal: the caller has named the first one only.

    Raises:
        OSError: the file cannot be read.
        InvalidFeed: the address cannot be read within its bounds.
    """
    if location == STDIN:
        return stdin.read(MAX_BYTES + 1)
    if not is_url(location):
        with Path(location).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    try:
        target = parse_target(location)
        client = EgressClient(FEED, internal_hosts={target.host})
        answer = client.send("GET", target, {"User-Agent": "gridcast"})
    except EgressError as error:
        raise InvalidFeed(f"cannot fetch it: {error}") from error
    if not 200 <= answer.status < 300:
        phrase = http.HTTPStatus(answer.status).phrase if answer.status in set(http.HTTPStatus) else ""
        raise InvalidFeed(f"the server answered {answer.status} {phrase}".rstrip())
    return answer.body
