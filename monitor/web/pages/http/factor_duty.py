"""Confine sessions without the second factor that their roles need to the pages that add one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import redirect
from django_htmx.http import HttpResponseClientRefresh

from monitor.web.accounts.browsers import ForBrowsers
from monitor.web.accounts.factor_duty import factor_duty
from monitor.web.pages.http.access import NotAvailable, wants_part
from monitor.web.pages.http.confirmed import CONFIRMS_BY

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse, HttpResponseBase

# What adds a factor, and logs in another way or out. Pages on which users confirm are open as well.
OPEN = frozenset(
    {
        "account_login",
        "admin-login",
        "admin-logout",
        "healthz",
        "login",
        "logout",
        "mfa_activate_totp",
        "mfa_add_webauthn",
        "mfa_download_recovery_codes",
        "mfa_view_recovery_codes",
        "openid_connect_callback",
        "openid_connect_login",
        "readyz",
        "second-factor-due",
    }
)


class _FactorDuty:
    """Sets *factor_duty* of requests of pages; where the API takes sessions, ``PersonAuth`` asks for it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith("/api/"):
            request.factor_duty = factor_duty(request)  # type: ignore[attr-defined]  # read by templates
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, *_: Any) -> HttpResponse | None:
        duty = getattr(request, "factor_duty", None)
        match = request.resolver_match
        is_open = hasattr(view, CONFIRMS_BY) or (match and match.url_name in OPEN)
        if duty is None or not duty.is_over or is_open:
            return None
        if wants_part(request):
            return HttpResponseClientRefresh()
        if request.method in {"GET", "HEAD"}:
            return redirect("second-factor-due")
        raise NotAvailable(f"Your role {duty.roles[-1]} needs a second factor: add one first.")


class FactorDutyMiddleware(ForBrowsers, _FactorDuty):
    pass
