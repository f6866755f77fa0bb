"""Who asks: a program with a token, or a person with a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ninja.security import HttpBearer, SessionAuth

from monitor.api.problems import Refused
from monitor.models import ApiToken
from monitor.models.token import READ, REPORT, RUN

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


class PersonAuth(SessionAuth):
    """A session. Who has none is asked for a token, before his request is asked whether it is forged."""

    def __call__(self, request: HttpRequest) -> Any:
        return super().__call__(request) if request.user.is_authenticated else None


def require_run_permission(request: HttpRequest) -> None:
    """Raise Refused unless the one who asks may start runs: his user may, and so may his token."""
    if not _may(request, RUN, "monitor.run_series"):
        raise Refused(403, "not_allowed", f"this needs the permission to run series (scope {RUN!r})")


def require_report_permission(request: HttpRequest) -> None:
    """Raise Refused unless the one who asks may send reports: his user may, and so may his token."""
    if not _may(request, REPORT, "monitor.add_rawreport"):
        raise Refused(403, "not_allowed", f"this needs the permission to add raw reports (scope {REPORT!r})")


def _may(request: HttpRequest, scope: str, permission: str) -> bool:
    token = getattr(request, "auth", None)
    in_scope = scope in token.scopes if isinstance(token, ApiToken) else True
    return in_scope and bool(request.user.has_perm(permission))
