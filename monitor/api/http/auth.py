"""Authentication of API requests: an API token or a browser session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.utils import timezone
from ninja.security import HttpBearer, SessionAuth

from monitor.api.http.problems import Refused
from monitor.fleet import tokens
from monitor.ingest.group_commit import GroupCommit
from monitor.models import ApiToken, ReporterKey, Series
from monitor.models.token import OUTCOME, READ, REPORT, REPORT_PERMISSION, RUN, Sender

if TYPE_CHECKING:
    from django.http import HttpRequest

    from monitor.models.series import SeriesQuerySet

MOST_SENDERS = 500  # tokens looked up in one query
SAFE = ("GET", "HEAD", "OPTIONS")


class TokenAuth(HttpBearer):
    """An API token in the header ``Authorization: Bearer gcast_...``."""

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        api_token = ApiToken.objects.find(token)
        if api_token is None:
            return None
        if request.method in SAFE and READ not in api_token.scopes:
            raise Refused(403, "not_allowed", f"this needs a token with the scope {READ!r}")
        request.user = api_token.user
        return api_token


class PersonAuth(SessionAuth):
    """A browser session. Requests without a session are answered with 401 before the CSRF check."""

    def __call__(self, request: HttpRequest) -> Any:
        return super().__call__(request) if request.user.is_authenticated else None


class SenderAuth(HttpBearer):
    """A token that may send reports; concurrent requests look up their tokens in one query."""

    def authenticate(self, _request: HttpRequest, token: str) -> Sender | None:
        return _senders.submit(token)


class AgentAuth(HttpBearer):
    """A token that the agent of a remote reporter has signed: ``Authorization: Bearer gcrep...``."""

    def authenticate(self, _request: HttpRequest, token: str) -> ReporterKey:
        now = timezone.now()
        try:
            return tokens.authenticate(token, now)
        except tokens.TokenRefused as error:
            raise Refused(401, error.code, str(error), server_time=now.timestamp()) from error


def agent_key(request: HttpRequest, reporter: str) -> ReporterKey:
    """Return the key that authenticates *request*.

    Raises:
        Refused: it is the key of another reporter than the one that the path names.
    """
    key = getattr(request, "auth", None)
    if not isinstance(key, ReporterKey) or key.reporter.name != reporter:
        raise Refused(403, "not_yours", "the path names another reporter than the token")
    return key


_senders = GroupCommit(ApiToken.objects.senders, most=MOST_SENDERS)


def reportable(request: HttpRequest) -> SeriesQuerySet | None:
    """Return the series for which the caller may send reports; None means all series.

    Raises:
        Refused: the user lacks the permission, or the token lacks the scope.
    """
    sender = getattr(request, "auth", None)
    by_token = sender if isinstance(sender, Sender) else None
    if not (by_token.may_report if by_token else request.user.has_perm(f"monitor.{REPORT_PERMISSION}")):
        raise Refused(403, "not_allowed", f"this needs the permission to add raw reports (scope {REPORT!r})")
    if by_token and by_token.sees_all:
        return None
    return Series.objects.visible_to(User.objects.get(pk=by_token.user) if by_token else request.user)


def require_read(request: HttpRequest) -> None:
    """Raise Refused unless the caller may read; required for queries that are sent as POST."""
    token = getattr(request, "auth", None)
    if isinstance(token, ApiToken) and READ not in token.scopes:
        raise Refused(403, "not_allowed", f"this needs a token with the scope {READ!r}")


def require_run_permission(request: HttpRequest) -> None:
    """Raise Refused unless both the user and the token may start runs."""
    _require(request, RUN, "monitor.run_series", "run series")


def require_outcome_permission(request: HttpRequest) -> None:
    """Raise Refused unless both the user and the token may report job outcomes."""
    _require(request, OUTCOME, "monitor.add_outcome", "add outcomes")


def _require(request: HttpRequest, scope: str, permission: str, action: str) -> None:
    token = getattr(request, "auth", None)
    in_scope = scope in token.scopes if isinstance(token, ApiToken) else True
    if not (in_scope and request.user.has_perm(permission)):
        raise Refused(403, "not_allowed", f"this needs the permission to {action} (scope {scope!r})")
