"""Updates of open pages: htmx sends the digest of what a page shows, and gets 204 if that is current."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from monitor.pages.http.access import wants_part

if TYPE_CHECKING:
    from django.http import HttpRequest


def digest_of(content: object) -> str:
    """Return a digest of what *content* shows, by its ``repr``; ages must not be part of it."""
    return hashlib.blake2s(repr(content).encode(), digest_size=8).hexdigest()


def is_current(request: HttpRequest, digest: str) -> bool:
    """Return whether *request* asks for an update and already shows what *digest* stands for."""
    return wants_part(request) and request.GET.get("seen") == digest
