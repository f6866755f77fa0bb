"""Who asks: a program with a token. (A person's session is django-ninja's own ``django_auth``.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ninja.security import HttpBearer

from monitor.api.problems import Refused
from monitor.models import ApiToken
from monitor.models.token import READ, RUN

if TYPE_CHECKING:
    from django.http import HttpRequest

SAFE = ("GET", "HEAD", "OPTIONS")


class TokenAuth(HttpBearer):
    """``Authorization: Bearer gcast_...``"""

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        found = ApiToken.objects.find(token)
        if found is None:
            return None
        if request.method in SAFE and READ not in found.scopes:
            raise Refused(403, "not_allowed", f"this needs a token with the scope {READ!r}")
        request.user = found.user
        return found


def require_run_permission(request: HttpRequest) -> None:
    """Raise Refused unless the one who asks may start runs: his user may, and so may his token."""
    token = getattr(request, "auth", None)
    in_scope = RUN in token.scopes if isinstance(token, ApiToken) else True
    if not (in_scope and request.user.has_perm("monitor.run_series")):
        raise Refused(403, "not_allowed", f"this needs the permission to run series (scope {RUN!r})")
