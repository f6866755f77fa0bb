"""Log in by the identity provider, and end what a user does here who has logged out there."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING

from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthProcess
from django.conf import settings
from django.http import Http404, HttpResponse, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from monitor.web.accounts import events
from monitor.web.accounts.provider.faults import ProviderBusy, ProviderFault, ProviderUnreachable
from monitor.web.accounts.provider.login import VerifyingAdapter, VerifyingCallback
from monitor.web.accounts.provider.logout import end_by_provider
from monitor.web.accounts.provider_adapter import PROVIDER_ID, identity_provider
from monitor.web.pages.http.audit import begin_change
from monitor.web.pages.http.to_provider import refused_by_provider, to_provider

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

logger = logging.getLogger(__name__)


def start(request: HttpRequest, **_: str) -> HttpResponse:
    """Redirect to the provider, to log in.

    With ``?choose=1``, the provider asks which account; with ``?choose=login``, for a new login.
    """
    match request.GET.get("choose"):
        case None:
            return to_provider(request, AuthProcess.LOGIN, {})
        case "login":
            return to_provider(request, AuthProcess.LOGIN, {"prompt": "login"})
    return to_provider(request, AuthProcess.LOGIN, {"prompt": "select_account"}, asks_for_choice=True)


def finish(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Take the provider's answer."""
    try:
        adapter = VerifyingAdapter(request, provider_id)
        adapter.on_verified = begin_change
        response: HttpResponseBase = VerifyingCallback.adapter_view(adapter)(request)
    except SocialApp.DoesNotExist:
        raise Http404 from None
    except ProviderBusy as error:  # Django logs one such answer a minute
        return refused_by_provider(request, error)
    except ProviderFault as error:
        events.refuse(request, "", f"{identity_provider().name}: {error}")
        return refused_by_provider(request, error)
    return response


@csrf_exempt  # the provider sends it, with a signature
@require_POST
def end(request: HttpRequest) -> HttpResponse:
    """End what a user does here who has logged out at the provider, which posts a logout token."""
    if settings.GRIDCAST_IDENTITY_PROVIDER is None:
        raise Http404
    provider, headers = settings.GRIDCAST_IDENTITY_PROVIDER, {"Cache-Control": "no-store"}
    token = request.POST.get("logout_token", "")
    try:
        identity = end_by_provider(token, provider, timezone.now(), lambda: begin_change(request))
    except ProviderFault as error:
        events.refuse_logout(request, f"{identity_provider().name}: {error}")
        body = {"error": "invalid_request", "error_description": str(error)}
        is_ours = isinstance(error, (ProviderBusy, ProviderUnreachable))  # the token may be a good one
        status = error.status if is_ours else HTTPStatus.BAD_REQUEST
        return JsonResponse(body, status=status, headers=headers)
    if identity is not None:
        events.record(request, identity.user.get_username(), "logout at the provider")
    return HttpResponse(headers=headers)


_PROVIDER = {"provider_id": PROVIDER_ID}

urlpatterns = [
    path("login/sso/", start, _PROVIDER, name="openid_connect_login"),
    path("login/sso/callback/", finish, _PROVIDER, name="openid_connect_callback"),
    path("login/sso/backchannel-logout/", end, name="provider-logout"),
]
