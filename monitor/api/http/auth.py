"""Authentication of API requests: an API token or a browser session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.utils import timezone
from ninja.security import HttpBearer, SessionAuth

from monitor.api.http.problems import Refused
from monitor.fleet import tokens
from monitor.ingest.group_commit import GroupCommit
from monitor.models import ApiToken, ReporterKey, Series
from monitor.models.own_signature import MANAGE_SIGNATURES
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.token import MANAGE, OUTCOME, READ, REPORT, RUN, Sender
from monitor.models.webhook import MANAGE_WEBHOOKS

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


@dataclass(frozen=True)
class ReportRights:
    """The reports that a request may send: of *reporter*, and of *visible* series (None: all series)."""

    reporter: str
    visible: SeriesQuerySet | None


def report_rights(request: HttpRequest) -> ReportRights:
    """Return which reports the caller may send.

    Raises:
        Refused: the user lacks the permission, or the token lacks the scope or a reporter.
    """
    sender: Sender = request.auth  # type: ignore[attr-defined]  # set by SenderAuth
    if not sender.may_report:
        raise Refused(403, "not_allowed", f"this needs the permission to add raw reports (scope {REPORT!r})")
    if sender.reporter is None:
        raise Refused(
            403,
            "no_reporter",
            "the token is bound to no reporter and may send no reports; an administrator issues one that is:"
            " manage.py token USER --scope report --reporter NAME",
        )
    visible = None if sender.sees_all else Series.objects.visible_to(User.objects.get(pk=sender.user))
    return ReportRights(sender.reporter, visible)


def require_scope(request: HttpRequest, scope: str) -> None:
    """Raise Refused if the caller's token lacks *scope*; a queryset or room decides what the user may do."""
    token = getattr(request, "auth", None)
    if isinstance(token, ApiToken) and scope not in token.scopes:
        raise Refused(403, "not_allowed", f"this needs a token with the scope {scope!r}")


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


def require_manage_permission(request: HttpRequest) -> None:
    """Raise Refused unless both the user and the token may create, enrol and revoke reporters."""
    _require(request, MANAGE, MANAGE_REPORTERS, "manage reporters")


def require_signature_permission(request: HttpRequest) -> None:
    """Raise Refused unless both the user and the token may accept and withdraw signatures."""
    _require(request, MANAGE, MANAGE_SIGNATURES, "manage signatures")


def require_webhook_permission(request: HttpRequest) -> None:
    """Raise Refused unless both the user and the token may define webhooks and repeat deliveries."""
    _require(request, MANAGE, MANAGE_WEBHOOKS, "manage webhooks")


def _require(request: HttpRequest, scope: str, permission: str, action: str) -> None:
    token = getattr(request, "auth", None)
    in_scope = scope in token.scopes if isinstance(token, ApiToken) else True
    if not (in_scope and request.user.has_perm(permission)):
        raise Refused(403, "not_allowed", f"this needs the permission to {action} (scope {scope!r})")
