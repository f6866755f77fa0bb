"""Authentication of API requests: an API token or a browser session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from ninja.security import HttpBearer, SessionAuth

from monitor.models import ApiToken, ReporterKey, Series
from monitor.models.alert import CHANGE_RULES
from monitor.models.audit_event import VIEW_AUDIT
from monitor.models.maintenance_window import CHANGE_WINDOWS
from monitor.models.own_signature import MANAGE_SIGNATURES
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.role import reads_measurements
from monitor.models.site import OPERATE, may_manage_everywhere, may_manage_somewhere
from monitor.models.token import MANAGE, OUTCOME, READ, REPORT, RUN, Sender
from monitor.models.webhook import MANAGE_WEBHOOKS
from monitor.operations.web_server.client_address import client_address
from monitor.runs.fleet import tokens
from monitor.runs.ingest.group_commit import GroupCommit
from monitor.web.accounts.factor_duty import factor_duty
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest

    from monitor.models.series import SeriesQuerySet

MOST_SENDERS = 500  # tokens looked up in one query
ADD_OUTCOME = "monitor.add_outcome"
SAFE = ("GET", "HEAD", "OPTIONS")


class TokenAuth(HttpBearer):
    """An API token in the header ``Authorization: Bearer gcast_...``."""

    def __init__(self, *, is_for_schedulers: bool = False, is_for_every_scope: bool = False) -> None:
        super().__init__()
        self._is_for_schedulers = is_for_schedulers
        self._is_for_every_scope = is_for_every_scope

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        api_token = ApiToken.objects.find(token)
        if api_token is None:
            return None
        request.user, request.api_token = api_token.user, api_token.prefix  # type: ignore[attr-defined]
        if api_token.is_use_due:
            request.token_use = api_token.pk, client_address(request)  # type: ignore[attr-defined]
        is_read = request.method in SAFE and not self._is_for_every_scope
        if is_read and READ not in api_token.scopes:
            raise Refused(403, "not_allowed", f"this needs a token with the scope {READ!r}")
        if not self._is_for_schedulers:
            _require_measurements(request)
        return api_token


class PersonAuth(SessionAuth):
    """A browser session. Requests without a session are answered with 401 before the CSRF check."""

    def __init__(self, *, is_for_schedulers: bool = False) -> None:
        super().__init__()
        self._is_for_schedulers = is_for_schedulers

    def __call__(self, request: HttpRequest) -> Any:
        if not request.user.is_authenticated:
            return None
        user = super().__call__(request)
        duty = factor_duty(request)
        if duty is not None and duty.is_over:
            raise Refused(
                403, "not_allowed", f"the role {duty.roles[-1]} needs a second factor: add one on the pages"
            )
        if not self._is_for_schedulers:
            _require_measurements(request)
        return user


def _require_measurements(request: HttpRequest) -> None:
    if not reads_measurements(request.user):
        raise Refused(
            403, "not_allowed", "the role scheduler does not permit this; the role viewer may read it"
        )


# Of operations that users with no other role than ``scheduler`` may call too; all others are closed to them.
SCHEDULER_AUTH = [TokenAuth(is_for_schedulers=True), PersonAuth(is_for_schedulers=True)]
# Of operations of a token about itself: every valid token may call them, whatever its scopes are.
OWN_TOKEN_AUTH = [TokenAuth(is_for_schedulers=True, is_for_every_scope=True)]


class SenderAuth(HttpBearer):
    """A token that may send reports; concurrent requests look up their tokens in one query."""

    def authenticate(self, request: HttpRequest, token: str) -> Sender | None:
        sender = _senders.submit(token)
        if sender is not None:
            request.api_token = sender.prefix  # type: ignore[attr-defined]
            if sender.is_use_due:
                request.token_use = sender.token, client_address(request)  # type: ignore[attr-defined]
        return sender


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
            " manage.py token issue USER --scope report --reporter NAME",
        )
    visible = None if sender.sees_all else Series.objects.visible_to(sender.acting())
    return ReportRights(sender.reporter, visible)


def require_read(request: HttpRequest) -> None:
    """Raise Refused unless the caller may read; required for queries that are sent as POST."""
    if not _in_scope(request, READ):
        raise Refused(403, "not_allowed", f"this needs a token with the scope {READ!r}")


def require_site_permission(request: HttpRequest, permission: str = OPERATE, scope: str = RUN) -> None:
    """Raise Refused unless the user has *permission* at some site, and the token *scope*.

    ``require_manageable`` then decides about the object.
    """
    if not (_in_scope(request, scope) and may_manage_somewhere(request.user, permission)):
        raise Refused(403, "not_allowed", f"this needs {_ACTIONS[permission]} (scope {scope!r})")


def require_manageable(found: Model, manageable: QuerySet[Any]) -> None:
    """Raise Refused unless *found*, which the user may see, is among the *manageable* objects."""
    if not manageable.filter(pk=found.pk).exists():
        raise Refused(403, "not_allowed", f"your roles or your token do not permit this for {found}")


def require_audit_permission(request: HttpRequest) -> None:
    """Raise Refused unless the user may see the audit record."""
    if not may_manage_everywhere(request.user, VIEW_AUDIT):
        raise Refused(403, "not_allowed", "this needs the role operator or administrator")


def require_token_rights(request: HttpRequest) -> ApiToken | None:
    """Return the token of the request, None for a session. Raises Refused unless it may manage tokens."""
    token = token_of(request)
    if token is None:
        return None
    if MANAGE not in token.scopes:
        raise Refused(403, "not_allowed", f"this needs a token with the scope {MANAGE!r}")
    return token


def token_of(request: HttpRequest) -> ApiToken | None:
    """Return the token that authenticates *request*; None if a session does."""
    token = getattr(request, "auth", None)
    return token if isinstance(token, ApiToken) else None


def require_in_scope(request: HttpRequest, scope: str) -> None:
    """Raise Refused unless the token of the request, if it has one, has *scope*."""
    if not _in_scope(request, scope):
        raise Refused(403, "not_allowed", f"this needs a token with the scope {scope!r}")


def require_outcome_permission(request: HttpRequest) -> None:
    """Raise Refused unless both the user and the token may report job outcomes, which are measured data."""
    if not (_in_scope(request, OUTCOME) and request.user.has_perm(ADD_OUTCOME)):
        raise Refused(403, "not_allowed", f"this needs {_ACTIONS[ADD_OUTCOME]} (scope {OUTCOME!r})")


def require_signature_permission(request: HttpRequest) -> None:
    """Raise Refused unless both the user and the token may accept and withdraw signatures."""
    _require(request, MANAGE, MANAGE_SIGNATURES)


def require_webhook_permission(request: HttpRequest) -> None:
    """Raise Refused unless both the user and the token may define webhooks and repeat deliveries."""
    _require(request, MANAGE, MANAGE_WEBHOOKS)


def _require(request: HttpRequest, scope: str, permission: str) -> None:
    if not (_in_scope(request, scope) and may_manage_everywhere(request.user, permission)):
        raise Refused(403, "not_allowed", f"this needs {_ACTIONS[permission]} (scope {scope!r})")


def _in_scope(request: HttpRequest, scope: str) -> bool:
    token = token_of(request)
    return token is None or scope in token.scopes


_ACTIONS = {
    OPERATE: "the permission to run series",
    ADD_OUTCOME: "the permission to add outcomes",
    CHANGE_RULES: "the permission to change alert rules",
    CHANGE_WINDOWS: "the permission to change maintenance windows",
    MANAGE_REPORTERS: "the permission to manage reporters",
    MANAGE_SIGNATURES: "the permission to manage signatures",
    MANAGE_WEBHOOKS: "the permission to manage webhooks",
}
