"""Send the browser to the identity provider, or say why that is not possible now."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from allauth.account.utils import get_next_redirect_url
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp
from django.conf import settings
from django.http import Http404, HttpResponseRedirect
from django.shortcuts import render

from monitor.web.accounts import attempts
from monitor.web.accounts.provider.faults import BUSY_SECONDS, ProviderBusy, ProviderFault
from monitor.web.accounts.provider_adapter import PROVIDER_ID, identity_provider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

logger = logging.getLogger(__name__)


def to_provider(
    request: HttpRequest, process: str, parameters: Mapping[str, str], **state: Any
) -> HttpResponse:
    """Redirect to the provider with further *parameters*; the callback finds *state* again."""
    attempts.start(request)
    try:
        provider = get_adapter().get_provider(request, PROVIDER_ID)
        response: HttpResponse = provider.redirect(
            request,
            process=process,
            next_url=get_next_redirect_url(request),
            auth_params={**provider.get_auth_params(), **parameters},
            **state,
        )
    except SocialApp.DoesNotExist:
        raise Http404 from None
    except ProviderBusy as error:
        return refused_by_provider(request, error)
    except ProviderFault as error:
        logger.warning("no login by the identity provider: %s", error)
        return refused_by_provider(request, error)
    return response


def lead_on(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """Answer a form with a page that leads on to where *answer* redirects.

    The content security policy lets no form end at another host, and so no redirect of its answer either.
    """
    if not isinstance(answer, HttpResponseRedirect):
        return answer
    page = render(request, "pages/to_provider.html", {"url": answer.url, "provider": identity_provider()})
    page["Cache-Control"] = "no-store"
    return page


def refused_by_provider(request: HttpRequest, error: ProviderFault) -> HttpResponse:
    context = {
        "reason": error.reason,
        "provider": identity_provider().name,
        "local_login": settings.GRIDCAST_LOCAL_LOGIN.permits_any,
    }
    response = render(request, "pages/login_refused.html", context, status=error.status)
    if isinstance(error, ProviderBusy):
        response["Retry-After"] = str(BUSY_SECONDS)
    response["Cache-Control"] = "no-store"
    return response
