"""Log in and out: by password, with a second factor, by passkey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account.views import LoginView
from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.views import LoginWebAuthnView
from django.conf import settings
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect
from django.urls import path

from monitor.accounts import attempts

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse, HttpResponseBase


class PasswordLogin(LoginView):  # type: ignore[misc]  # allauth has no types
    template_name = "pages/login.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "provider": settings.GRIDCAST_IDENTITY_PROVIDER}


class SecondFactorLogin(AuthenticateView):  # type: ignore[misc]
    template_name = "pages/login_second_factor.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        factors = Authenticator.objects.filter(user=self.stage.login.user).values_list("type", flat=True)
        return {**context, "kinds": set(factors), "name": self.stage.login.user.get_username()}


class PasskeyLogin(LoginWebAuthnView):  # type: ignore[misc]
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer with the challenge."""
        attempts.start(request)
        response: HttpResponse = super().get(request, *args, **kwargs)
        return response

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with attempts.anonymous_attempt(request) as attempt:
            response: HttpResponse = super().post(request, *args, **kwargs)
            if request.user.is_authenticated:
                attempt.succeed()
            return response


def cancel(request: HttpRequest) -> HttpResponse:
    """Forget a login that waits for its second factor."""
    if not request.user.is_authenticated:
        request.session.flush()
    return redirect("login")


def admin_login(request: HttpRequest) -> HttpResponseBase:
    """Send visitors of the admin site to the login of all pages: it throttles and asks for second factors."""
    if request.user.is_authenticated:
        raise PermissionDenied("Your account may not open the admin site.")
    return redirect_to_login(request.GET.get("next", "/admin/"))


login = PasswordLogin.as_view()

urlpatterns = [
    path("login/", login, name="login"),
    path("login/", login, name="account_login"),
    path("login/second-factor/", SecondFactorLogin.as_view(), name="mfa_authenticate"),
    path("login/cancel/", cancel, name="login-cancel"),
    path("login/passkey/", PasskeyLogin.as_view(), name="mfa_login_webauthn"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("admin/login/", admin_login, name="admin-login"),
    path("admin/logout/", LogoutView.as_view(), name="admin-logout"),
]
