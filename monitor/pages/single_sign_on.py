"""Log in by the identity provider, or connect an account there with one's own."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING

import requests
from allauth.account.utils import get_next_redirect_url
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.openid_connect.views import callback
from django.conf import settings
from django.http import Http404
from django.shortcuts import render
from django.urls import path

from monitor.accounts import attempts
from monitor.accounts.provider_adapter import PROVIDER_ID, identity_provider
from monitor.pages.http.access import accounts_only
from monitor.pages.http.confirmed import confirmed

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse, HttpResponseBase

logger = logging.getLogger(__name__)


def start(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Redirect to the provider, to log in."""
    return _redirect(request, provider_id, AuthProcess.LOGIN)


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
    return _redirect(request, PROVIDER_ID, AuthProcess.CONNECT)


def finish(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Take the provider's answer."""
    try:
        response: HttpResponseBase = callback(request, provider_id)
    except requests.RequestException as error:
        return _unreachable(request, error)
    return response


def _redirect(request: HttpRequest, provider_id: str, process: str) -> HttpResponse:
    attempts.start(request)
    try:
        provider = get_adapter().get_provider(request, provider_id)
        response: HttpResponse = provider.redirect(
            request, process=process, next_url=get_next_redirect_url(request)
        )
    except SocialApp.DoesNotExist:
        raise Http404 from None
    except (requests.RequestException, KeyError) as error:  # no answer, or one without the endpoints
        return _unreachable(request, error)
    return response


def _unreachable(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.warning("the identity provider gave no usable answer: %r", error)
    context = {"reason": "provider_unreachable", "provider": identity_provider().name}
    return render(request, "pages/login_refused.html", context, status=HTTPStatus.BAD_GATEWAY)


_PROVIDER = {"provider_id": PROVIDER_ID}

urlpatterns = [
    path("login/sso/", start, _PROVIDER, name="openid_connect_login"),
    path("login/sso/callback/", finish, _PROVIDER, name="openid_connect_callback"),
    path("account/connect/", connect, name="account-connect"),
    path("account/connect/start/", start_connecting, name="account-connect-start"),
]
