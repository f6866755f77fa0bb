"""Read the bytes of a feed: a file, standard input, or an http or https address."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO

from monitor.ledger.maintenance_feeds.base import MAX_BYTES, InvalidFeed

STDIN = "-"
_TIMEOUT_SECONDS, _CHUNK_BYTES = 20.0, 1 << 16
_SCHEMES = ("http://", "https://")


def is_url(location: str) -> bool:
    return location.lower().startswith(_SCHEMES)


def read_feed(location: str, stdin: BinaryIO, *, max_seconds: float = 60.0) -> bytes:
    """Return the bytes at *location*, at most one more than a feed may have.

    Raises:
        OSError: the file cannot be read.
        InvalidFeed: the address cannot be read, or not in *max_seconds*.
    """
    if location == STDIN:
        return stdin.read(MAX_BYTES + 1)
    if not is_url(location):
        with Path(location).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    try:
        return _fetch(location, time.monotonic() + max_seconds)
    except urllib.error.HTTPError as error:
        raise InvalidFeed(f"the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", "") or str(error) or type(error).__name__
        raise InvalidFeed(f"cannot fetch it: {reason}") from error


def _fetch(url: str, deadline: float) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "gridcast"})  # noqa: S310 - the scheme is checked
    data = bytearray()
    with _opener().open(request, timeout=_TIMEOUT_SECONDS) as response:
        while len(data) <= MAX_BYTES and (chunk := response.read1(_CHUNK_BYTES)):
            data += chunk
            if time.monotonic() > deadline:
                raise InvalidFeed("cannot fetch it: it takes too long")
    return bytes(data)


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for http and https alone: a redirect leads neither to files nor to FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener
