"""Entity tags: a client that has an answer already is told so, without the answer.

All tags are weak: the age of the data grows from one answer to the next, which means nothing to a client that
has the data.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.utils.http import parse_etags

if TYPE_CHECKING:
    from django.http import HttpRequest

_AGES = re.compile(rb'"(?:[a-z_]*_)?age_seconds":[^,}\]]*')
_WINDOW = re.compile(rb'"start":"[^"]*","end":"[^"]*"')  # of ``WindowOut``
_BYTES = 12  # of a digest


def tag_of(*parts: bytes) -> str:
    """Return the tag of an answer that *parts* determine."""
    digest = hashlib.blake2b(digest_size=_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return f'W/"{digest.hexdigest()}"'


def tag_of_body(body: bytes, *, ends_now: bool = False) -> str:
    """Return the tag of the JSON *body*; ages do not count.

    *ends_now*: the window of the answer moves with the clock and does not count; what lies in it does.
    """
    counted = _AGES.sub(b"", body)
    return tag_of(_WINDOW.sub(b"", counted, count=1) if ends_now else counted)


def is_known(request: HttpRequest, tag: str) -> bool:
    """Return whether the client has the answer with this *tag*."""
    header = request.headers.get("If-None-Match")
    if header is None:
        return False
    given = parse_etags(header)
    return given == ["*"] or tag.removeprefix("W/") in {each.removeprefix("W/") for each in given}


def not_modified(tag: str) -> HttpResponse:
    response = HttpResponse(status=304)
    del response["Content-Type"]
    response["ETag"] = tag
    return response
