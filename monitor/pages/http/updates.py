"""Updates of open pages: htmx sends the digest of a page's content, and gets 204 if the page is current."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from monitor.pages.http.access import wants_part

if TYPE_CHECKING:
    from django.http import HttpRequest


_ENCODER = msgspec.msgpack.Encoder(enc_hook=repr, order="deterministic")


def digest_of(content: object) -> str:
    """Return a digest of *content*, which must not include ages."""
    return hashlib.blake2s(_ENCODER.encode(content), digest_size=8).hexdigest()


def is_current(request: HttpRequest, digest: str) -> bool:
    """Return whether *request* is an update of a page that already shows the content with this *digest*."""
    return wants_part(request) and request.GET.get("seen") == digest
