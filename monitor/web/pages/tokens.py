"""The roles of the user and its API tokens: listed, issued, rotated and revoked."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from monitor.depot.access import roles, tokens
from monitor.depot.access.token_callers import TokenError, may_have_text
from monitor.depot.access.tokens import IssuedToken, TokenRequest
from monitor.models import ApiToken, Reporter, Site
from monitor.models.audit_event import VIEW_AUDIT
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.token import LIFETIME, READ
from monitor.web.accounts.confirmation import is_confirmed
from monitor.web.pages.http.access import accounts_only
from monitor.web.pages.http.confirmed import ask_to_confirm
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User

NEVER = "never"
SPANS = {
    "7": "7 days",
    "30": "30 days",
    str(LIFETIME.days): f"{LIFETIME.days} days",
    "365": "1 year",
    NEVER: "never",
}
FIELDS = ("name", "scopes", "days", "reporter", "site")
MOST_ENDED = 20
SCOPE_TITLES = {
    "read": "read what you may see",
    "run": "start runs, hold and resume, see to alerts",
    "report": "send the reports of one reporter",
    "outcome": "report the outcomes of jobs",
    "manage": "manage reporters, signatures, webhooks, tokens and the entries of the grid",
}


@accounts_only
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return _show(request)
    user = _user(request)
    chosen = {name: request.POST.get(name, "") or None for name in ("reporter", "site")}
    days = request.POST.get("days", "")
    if days == NEVER and not is_confirmed(request):
        kept = {name: request.POST.getlist(name) for name in FIELDS}
        return ask_to_confirm(request, f"{reverse('tokens')}?{urlencode(kept, doseq=True)}")
    try:
        if days not in SPANS:
            raise tokens.InvalidTokenRequest(
                f"expires after: expected one of the listed values, got {days[:20]!r}"
            )
        asked = TokenRequest(
            user=user,
            name=request.POST.get("name", ""),
            scopes=request.POST.getlist("scopes"),
            days=None if days == NEVER else int(days),
            **chosen,
        )
        issued = tokens.issue(asked, timezone.now(), issuer=user)
    except TokenError as error:
        return _show(request, error=str(error))
    return _show(request, issued=issued)


@accounts_only
@require_POST
def rotate(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Show the page with the token that replaces *pk*; only this answer contains it."""
    token = get_object_or_404(_own(request), pk=pk)
    if token.expires_at is None and not is_confirmed(request):
        return ask_to_confirm(request, reverse("tokens"))
    try:
        return _show(request, issued=tokens.rotate(token, timezone.now(), caller=_user(request)))
    except TokenError as error:
        return _show(request, error=str(error))


@accounts_only
@require_POST
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke the token *pk*; with the field ``family``, also those that came of it."""
    token = get_object_or_404(_own(request), pk=pk)
    family = ApiToken.objects.family(token) if "family" in request.POST else None
    number = tokens.revoke(ApiToken.objects.filter(pk=pk) if family is None else family, timezone.now())
    others = f" with {number - 1} that came of it" if number > 1 else ""
    messages.success(request, f"The token {token.name} is revoked{others}.")
    return redirect("tokens")


def _show(request: HttpRequest, *, issued: IssuedToken | None = None, error: str = "") -> HttpResponse:
    user, now = _user(request), timezone.now()
    own = _own(request).order_by("-pk")
    usable = own.usable(now)
    ended = own.exclude(pk__in=usable.order_by().values("pk"))
    derived = ApiToken.objects.filter(parent=OuterRef("pk"))
    manageable = Site.objects.manageable_by(user, MANAGE_REPORTERS)
    offered = compute(request, "issue", lambda: tokens.offered_scopes(user)) or []
    context: dict[str, Any] = {
        "grants": compute(request, "grants", lambda: [str(grant) for grant in roles.present_grants(user)]),
        "usable": compute(
            request,
            "tokens",
            lambda: _rows(usable.annotate(has_derived=Exists(derived)), user, now),
        ),
        "ended": compute(request, "tokens", lambda: _rows(ended[:MOST_ENDED], user, now)),
        "scopes": [(scope, SCOPE_TITLES[scope]) for scope in offered],
        "reporters": compute(
            request,
            "issue",
            lambda: list(Reporter.objects.reportable_by(user).values_list("name", flat=True)),
        ),
        "sites": compute(request, "issue", lambda: list(manageable.values_list("name", flat=True))),
        "spans": SPANS.items(),
        "submitted": _submitted(request, error),
        "issued": issued,
        "error": error,
        "sees_audit": user.has_perm(VIEW_AUDIT),
        "now": now,
    }
    return render(request, "pages/tokens.html", context, status=409 if error else 200)


def _submitted(request: HttpRequest, error: str) -> dict[str, Any]:
    """Return the values of the form; those that were refused, or for which the user has just confirmed."""
    sent = request.POST if error else request.GET
    if not error and sent.get("days") != NEVER:
        return {"scopes": [READ], "days": str(LIFETIME.days)}
    return {name: sent.getlist(name) if name == "scopes" else sent.get(name, "") for name in FIELDS}


def _rows(found: Iterable[Any], user: User, now: datetime) -> list[dict[str, Any]]:
    """Return what the page shows of the tokens *found* of *user*, with whether it is admitted by each."""
    return [
        {
            "token": token,
            "state": token.state(now),
            "bound_to": token.reporter or token.site,
            "stopped": token.stopped_because(now, is_admitted=token.is_admitted),
            "may_rotate": token.is_admitted and may_have_text(user, user.pk, token.identity_id),
        }
        for token in found
    ]


def _own(request: HttpRequest) -> Any:
    own = ApiToken.objects.filter(user=request.user.pk)
    return own.with_admission().select_related("reporter", "site")


def _user(request: HttpRequest) -> User:
    return request.user  # type: ignore[return-value]  # logged in


entries = [NavigationEntry("Account", "Tokens", "tokens", permits=lambda user: user.is_authenticated)]
urlpatterns = [
    path("account/tokens/", page, name="tokens"),
    path("account/tokens/<int:pk>/rotate/", rotate, name="token-rotate"),
    path("account/tokens/<int:pk>/revoke/", revoke, name="token-revoke"),
]
