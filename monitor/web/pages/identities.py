"""The identities of one's own account: connected and disconnected; and the confirmation at the provider.

Each step is a form: a link on a foreign page must not connect an identity to the account of its reader.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from allauth.account.utils import get_next_redirect_url
from allauth.socialaccount.providers.base.constants import AuthProcess
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.http import require_http_methods

from monitor.depot.access.roles import LastAdministrator
from monitor.models import Identity
from monitor.web.accounts import identities
from monitor.web.accounts.confirmation import AT_PROVIDER, CONFIRMED_SECONDS
from monitor.web.accounts.environment import AUTH_TIME, IdentityProvider
from monitor.web.accounts.identities import NoDoorLeft
from monitor.web.pages.http.access import accounts_only
from monitor.web.pages.http.audit import begin_change
from monitor.web.pages.http.confirmed import confirmed, confirms_by
from monitor.web.pages.http.to_provider import lead_on, to_provider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import User


@accounts_only
@confirmed
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """Explain what connecting does, and begin it."""
    provider = _provider()
    number = Identity.objects.filter(user=_user(request)).count()
    if number >= provider.most_identities:
        messages.error(
            request, f"Your account has {number} of at most {provider.most_identities}: disconnect one first."
        )
        return redirect("account")
    if request.method != "POST":
        return render(request, "pages/account_connect.html", {"provider": provider})
    answer = to_provider(request, AuthProcess.CONNECT, {}, begun_by=request.user.pk)
    begin_change(request)
    return lead_on(request, answer)


@accounts_only
@require_http_methods(["GET", "HEAD", "POST"])
@confirms_by(AT_PROVIDER)
def confirm(request: HttpRequest) -> HttpResponse:
    """Let the user confirm at the provider that it is the owner of the account."""
    provider = _provider()
    if request.method != "POST":
        context = {"provider": provider, "next": get_next_redirect_url(request) or ""}
        return render(request, "pages/account_confirm_provider.html", context)
    answer = to_provider(
        request,
        AuthProcess.REDIRECT,
        _asked_of(provider),
        begun_by=request.user.pk,
        begun_at=time.time(),
        is_confirmation=True,
    )
    begin_change(request)
    return lead_on(request, answer)


@accounts_only
@confirmed
@require_http_methods(["GET", "HEAD", "POST"])
def disconnect(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask before an identity is disconnected, and disconnect it."""
    identity = get_object_or_404(Identity, pk=pk, user=_user(request))
    context: dict[str, Any] = {"identity": identity}
    if request.method == "POST":
        try:
            identities.disconnect(identity)
        except (NoDoorLeft, LastAdministrator) as error:
            context["refusal"] = f"Not disconnected: {error}."
        else:
            messages.success(request, "Disconnected; sessions and tokens of it have ended.")
            return redirect("account")
    status = HTTPStatus.CONFLICT if "refusal" in context else HTTPStatus.OK
    return render(request, "pages/account_disconnect.html", context, status=status)


def _user(request: HttpRequest) -> User:
    user: User = request.user  # type: ignore[assignment]  # pages of accounts
    return user


def _provider() -> IdentityProvider:
    provider: IdentityProvider | None = settings.GRIDCAST_IDENTITY_PROVIDER
    if provider is None:
        raise Http404
    return provider


def _asked_of(provider: IdentityProvider) -> Mapping[str, str]:
    """Return the parameters that let the provider ask for the login again."""
    if provider.confirm == AUTH_TIME:
        return {"max_age": str(CONFIRMED_SECONDS)}
    return {"prompt": "login"}


urlpatterns = [
    path("account/connect/", connect, name="account-connect"),
    path("account/confirm/provider/", confirm, name="account-confirm-provider"),
    path("account/identities/<int:pk>/disconnect/", disconnect, name="account-disconnect"),
]
