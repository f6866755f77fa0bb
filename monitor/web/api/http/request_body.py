"""The uncompressed body of a request, within the bounds of ``envelope``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import UnreadablePostError

from monitor.web.api.http import envelope
from monitor.web.api.http.envelope import EnvelopeError, MalformedBody, TooMuch, Unsupported
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from django.http import HttpRequest

_STATUS: dict[type[EnvelopeError], tuple[int, str]] = {
    Unsupported: (415, "unsupported"),
    TooMuch: (413, "too_large"),
    MalformedBody: (400, "malformed"),
}


def read_body(request: HttpRequest) -> bytes:
    """Return the uncompressed body. Raises EnvelopeError if it is too large or not as its headers say."""
    try:
        return envelope.read(request, request.headers.get("Content-Encoding", "").strip().lower())
    except (OSError, UnreadablePostError) as error:
        raise MalformedBody(f"the body ended too early: {error}") from error


def refusal(error: EnvelopeError) -> Refused:
    """Return the problem that answers a request with this *error*."""
    return Refused(*_STATUS[type(error)], str(error))
