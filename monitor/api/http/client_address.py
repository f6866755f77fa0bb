"""The address of the client that sent a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """Return the address of the client; behind a proxy, the last address of ``X-Forwarded-For``.

    The last address is the one that our proxy has added: a client can forge the others.
    """
    forwarded = request.headers.get("X-Forwarded-For", "") if settings.SECURE_PROXY_SSL_HEADER else ""
    return forwarded.rpartition(",")[2].strip() or str(request.META.get("REMOTE_ADDR", ""))
