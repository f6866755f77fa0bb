"""The uncompressed body of a request, within the bounds of ``envelope``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import UnreadablePostError

from monitor.api.http import envelope
from monitor.api.http.envelope import EnvelopeError, MalformedBody, TooMuch, Unsupported
from monitor.api.http.problems import Refused

if TYPE_CHECKING:
    from django.http import HttpRequest

_STATUS: dict[type[EnvelopeError], tuple[int, str]] = {
    Unsupported: (415, "unsupported"),
    TooMuch: (413, "too_large"),
    MalformedBody: (400, "malformed"),
}


def read_body(request: HttpRequest) -> bytes:
    """Return the uncompressed body. Raises EnvelopeError if it is too large or not as its headers say."""
    # A chunked body has no length, so Django would read nothing. The web server ends the stream at its end.
    is_chunked = "HTTP_TRANSFER_ENCODING" in request.META and request.META.get("wsgi.input_terminated")
    stream = request.META["wsgi.input"] if is_chunked else request
    try:
        return envelope.read(stream, request.headers.get("Content-Encoding", "").strip().lower())
    except (OSError, UnreadablePostError) as error:
        raise MalformedBody(f"the body ended too early: {error}") from error


def refusal(error: EnvelopeError) -> Refused:
    """Return the problem that answers a request with this *error*."""
    return Refused(*_STATUS[type(error)], str(error))
