"""Log in and out: by password, with a second factor, by passkey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from allauth.account.views import LoginView
from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.views import LoginWebAuthnView
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import JsonResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone

from monitor.models.role import opens_admin
from monitor.web.accounts import attempts, codes, door_reasons, login_stage, passkeys, sessions
from monitor.web.accounts.provider.logout import logout_url
from monitor.web.accounts.relying_party import PasskeysUnavailable, relying_party

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse, HttpResponseBase


class PasswordLogin(LoginView):  # type: ignore[misc]  # allauth has no types
    template_name = "pages/login.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = {**super().get_context_data(**kwargs), "provider": settings.GRIDCAST_IDENTITY_PROVIDER}
        try:
            relying_party(self.request)
        except PasskeysUnavailable as error:
            context["passkeys_unavailable"] = str(error)
        return {**context, **self._session_without_roles()}

    def _session_without_roles(self) -> dict[str, Any]:
        """Return whose session the browser has, if it admits to nothing any more, and why."""
        user = get_user(self.request)
        if not isinstance(user, User) or self.request.user.is_authenticated:
            return {}
        closed = door_reasons.closed_door(user, timezone.now())
        return {"without_roles": user.get_username(), "why": closed.reason if closed else ""}


class SecondFactorLogin(AuthenticateView):  # type: ignore[misc]
    template_name = "pages/login_second_factor.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """End a login whose account has changed meanwhile, or has been deleted."""
        waiting = login_stage.waiting_login(request)
        if waiting is not None:
            if request.method == "POST" and waiting.login.user is not None:
                codes.lock_factors(waiting.login.user)  # a change at this moment comes before or after
            if login_stage.is_outdated(request, waiting.login):
                waiting.abort()
                return login_stage.refuse_outdated(request, waiting.login)
        return cast("HttpResponseBase", super().dispatch(request, *args, **kwargs))

    def get_context_data(self, **_: Any) -> dict[str, Any]:
        user = self.stage.login.user
        kinds = set(Authenticator.objects.filter(user=user).values_list("type", flat=True))
        context: dict[str, Any] = {"form": self.auth_form, "webauthn_form": self.webauthn_form}
        if Authenticator.Type.WEBAUTHN in kinds:
            try:
                context["js_data"] = {"request_options": passkeys.begin_authentication(self.request, user)}
            except PasskeysUnavailable as error:
                context["passkeys_unavailable"] = str(error)
        return {**context, "kinds": kinds, "name": user.get_username()}


class PasskeyLogin(LoginWebAuthnView):  # type: ignore[misc]
    def get(self, request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
        """Answer the script of the login page with a challenge."""
        if request.accepts("text/html"):
            return redirect("login")
        attempts.start(request)
        try:
            return JsonResponse({"request_options": passkeys.begin_authentication(request, None)})
        except PasskeysUnavailable as error:
            raise PermissionDenied(str(error)) from error

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with attempts.anonymous_attempt(request) as attempt:
            response: HttpResponse = super().post(request, *args, **kwargs)
            if request.user.is_authenticated:
                attempt.succeed()
            return response


class Logout(LogoutView):
    """Log out here; after a session that began at the provider, offer to log out there, too."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        provider = settings.GRIDCAST_IDENTITY_PROVIDER
        began_there = sessions.IDENTITY_KEY in request.session
        response = super().post(request, *args, **kwargs)
        if provider is None or not began_there:
            return response
        url = logout_url(provider, request.build_absolute_uri(reverse("login")))
        return render(request, "pages/logged_out.html", {"provider": provider, "url": url})


def cancel(request: HttpRequest) -> HttpResponse:
    """Forget a login that waits for its second factor."""
    if not request.user.is_authenticated:
        request.session.flush()
    return redirect("login")


def admin_login(request: HttpRequest) -> HttpResponseBase:
    """Send visitors of the admin site to the login of all pages: it throttles and asks for second factors."""
    if opens_admin(request.user):
        return redirect("admin:index")
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
    path("logout/", Logout.as_view(), name="logout"),
    path("admin/login/", admin_login, name="admin-login"),
    path("admin/logout/", Logout.as_view(), name="admin-logout"),
]
