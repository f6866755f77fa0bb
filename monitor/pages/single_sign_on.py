"""Log in by the identity provider, or connect an account there with one's own."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING

from allauth.account.utils import get_next_redirect_url
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthProcess
from django.conf import settings
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from monitor.accounts import attempts, events
from monitor.accounts.provider.faults import BUSY_SECONDS, ProviderBusy, ProviderFault
from monitor.accounts.provider.login import VerifyingAdapter, VerifyingCallback
from monitor.accounts.provider.logout import end_by_provider
from monitor.accounts.provider_adapter import PROVIDER_ID, identity_provider
from monitor.pages.http.access import accounts_only
from monitor.pages.http.audit import begin_change
from monitor.pages.http.confirmed import confirmed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponseBase

logger = logging.getLogger(__name__)


def start(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Redirect to the provider, to log in; with ``?choose=1``, the provider asks which account."""
    prompt = {"prompt": "select_account"} if "choose" in request.GET else {}
    return _redirect(request, provider_id, AuthProcess.LOGIN, prompt)


@accounts_only
@confirmed
def connect(request: HttpRequest) -> HttpResponse:
    """Explain what connecting does. The link leads on: forms may not lead to another host."""
    if settings.GRIDCAST_IDENTITY_PROVIDER is None:
        raise Http404
    return render(request, "pages/account_connect.html", {"provider": settings.GRIDCAST_IDENTITY_PROVIDER})


@accounts_only
@confirmed
def start_connecting(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider, to connect the account there with this one."""
    return _redirect(request, PROVIDER_ID, AuthProcess.CONNECT, {})


def finish(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Take the provider's answer."""
    try:
        adapter = VerifyingAdapter(request, provider_id)
        adapter.on_verified = begin_change
        response: HttpResponseBase = VerifyingCallback.adapter_view(adapter)(request)
    except SocialApp.DoesNotExist:
        raise Http404 from None
    except ProviderBusy as error:  # Django logs one such answer a minute
        return _refused(request, error)
    except ProviderFault as error:
        events.refuse(request, "", f"{identity_provider().name}: {error}")
        return _refused(request, error)
    return response


@csrf_exempt  # the provider sends it, with a signature
@require_POST
def end(request: HttpRequest) -> HttpResponse:
    """End what a user does here who has logged out at the provider, which posts a logout token."""
    if settings.GRIDCAST_IDENTITY_PROVIDER is None:
        raise Http404
    headers = {"Cache-Control": "no-store"}
    try:
        identity = end_by_provider(
            request.POST.get("logout_token", ""), settings.GRIDCAST_IDENTITY_PROVIDER, timezone.now()
        )
    except ProviderFault as error:
        events.refuse(request, "", f"{identity_provider().name}: {error}")
        body = {"error": "invalid_request", "error_description": str(error)}
        status = error.status if isinstance(error, ProviderBusy) else HTTPStatus.BAD_REQUEST
        return JsonResponse(body, status=status, headers=headers)
    if identity is not None:
        events.record(request, identity.user.get_username(), "logout at the provider")
    return HttpResponse(headers=headers)


def _redirect(
    request: HttpRequest, provider_id: str, process: str, parameters: Mapping[str, str]
) -> HttpResponse:
    attempts.start(request)
    try:
        provider = get_adapter().get_provider(request, provider_id)
        response: HttpResponse = provider.redirect(
            request,
            process=process,
            next_url=get_next_redirect_url(request),
            auth_params={**provider.get_auth_params(), **parameters},
        )
    except SocialApp.DoesNotExist:
        raise Http404 from None
    except ProviderBusy as error:
        return _refused(request, error)
    except ProviderFault as error:
        logger.warning("no login by the identity provider: %s", error)
        return _refused(request, error)
    return response


def _refused(request: HttpRequest, error: ProviderFault) -> HttpResponse:
    context = {"reason": error.reason, "provider": identity_provider().name}
    response = render(request, "pages/login_refused.html", context, status=error.status)
    if isinstance(error, ProviderBusy):
        response["Retry-After"] = str(BUSY_SECONDS)
    response["Cache-Control"] = "no-store"
    return response


_PROVIDER = {"provider_id": PROVIDER_ID}

urlpatterns = [
    path("login/sso/", start, _PROVIDER, name="openid_connect_login"),
    path("login/sso/callback/", finish, _PROVIDER, name="openid_connect_callback"),
    path("login/sso/backchannel-logout/", end, name="provider-logout"),
    path("account/connect/", connect, name="account-connect"),
    path("account/connect/start/", start_connecting, name="account-connect-start"),
]
