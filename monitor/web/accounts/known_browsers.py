"""A cookie that marks a browser in which a user has logged in before.

It gives no access. Attempts from such a browser are counted by themselves, so that other addresses that try
passwords cannot keep its user out.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

COOKIE = "gridcast_known"
_SALT = "monitor.accounts.known_browsers"
_SECONDS = 180 * 24 * 3600


def mark(response: HttpResponse, username: str) -> None:
    """Mark the browser that gets *response* as one of *username*."""
    response.set_signed_cookie(
        COOKIE,
        f"{_digest(username)}:{secrets.token_urlsafe(9)}",
        salt=_SALT,
        max_age=_SECONDS,
        secure=bool(settings.SESSION_COOKIE_SECURE),
        httponly=True,
        samesite="Lax",
    )


def browser_of(request: HttpRequest, username: str) -> str | None:
    """Return what identifies the browser if *username* has logged in there before."""
    value = request.get_signed_cookie(COOKIE, default="", salt=_SALT, max_age=_SECONDS)
    return value if value and value.startswith(f"{_digest(username)}:") else None


def _digest(username: str) -> str:
    return hashlib.sha256(username.encode()).hexdigest()[:16]
