"""One's own account: profile, password, second factors, sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.views import ReauthenticateView
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordChangeView
from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import redirect, render
from django.urls import path, reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from monitor.analysis.alerts.notified_rules import notified_rules
from monitor.core.units import counted
from monitor.depot.access import roles, tokens
from monitor.depot.access.audit_trail import note
from monitor.models import ApiToken, Identity, Incident, Site, Suite
from monitor.models.role import reads_measurements
from monitor.web.accounts import attempts, door_reasons, events, passwords, sessions
from monitor.web.accounts.confirmation import PASSWORD
from monitor.web.accounts.relying_party import PasskeysUnavailable, relying_party
from monitor.web.pages.http.access import NotAvailable, accounts_only
from monitor.web.pages.http.confirmed import confirms_by
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import DEFAULT_COOKIES, zone_names

if TYPE_CHECKING:
    from typing import Any

    from django.http import HttpRequest, HttpResponse, HttpResponseBase

    from monitor.models.token import ApiTokenQuerySet

MOST_SUGGESTED = 1000  # suites and sites


@accounts_only
def account(request: HttpRequest) -> HttpResponse:
    user: User = request.user  # type: ignore[assignment]  # members only
    own = Identity.objects.filter(user=user)
    assigned = Incident.objects.visible_to(user).open().filter(assigned_to=user.get_username())
    context = {
        "now": timezone.now(),
        "grants": compute(request, "profile", lambda: roles.present_grants(user)),
        **(compute(request, "factors", lambda: _factors(request, user)) or {}),
        "sessions": compute(request, "sessions", lambda: list(sessions.of_user(user))),
        "current_session": request.session.session_key,
        "identities": compute(request, "login", lambda: list(own)),
        **(compute(request, "login", lambda: _local_door(user)) or {}),
        "provider": settings.GRIDCAST_IDENTITY_PROVIDER,
        "zones": zone_names(),
        "rules": compute(request, "notifications", lambda: notified_rules(user)),
        "assigned": compute(request, "notifications", lambda: list(assigned)),
        "defaults": compute(request, "display", lambda: _defaults(request)),
    }
    return render(request, "pages/account.html", context)


def _local_door(user: User) -> dict[str, Any]:
    now = timezone.now()
    return {
        "closed": door_reasons.closed_door(user, now),
        "opened_until": door_reasons.opened_until(user, now),
        "what_opens": door_reasons.what_opens(user, now),
    }


def _factors(request: HttpRequest, user: User) -> dict[str, Any]:
    factors = Authenticator.objects.filter(user=user)
    by_type = {kind: [factor for factor in factors if factor.type == kind] for kind in Authenticator.Type}
    codes = [factor.wrap() for factor in by_type[Authenticator.Type.RECOVERY_CODES]]
    try:
        relying_party(request)
        hindrance = ""
    except PasskeysUnavailable as error:
        hindrance = str(error)
    return {
        "passkeys_unavailable": hindrance,
        "app": next(iter(by_type[Authenticator.Type.TOTP]), None),
        "passkeys": sorted(by_type[Authenticator.Type.WEBAUTHN], key=lambda factor: factor.created_at),
        "has_recovery_codes": bool(codes),
    }


def _defaults(request: HttpRequest) -> list[tuple[str, list[str], str]]:
    """Return the suites and sites that lists may begin with, and those that are chosen."""
    if not reads_measurements(request.user):
        return []
    user = request.user
    visible = {"suite": Suite.objects.visible_to(user), "site": Site.objects.visible_to(user)}
    return [
        (
            noun,
            list(rows.order_by("sort_name").values_list("name", flat=True)[:MOST_SUGGESTED]),
            request.COOKIES.get(DEFAULT_COOKIES[noun], ""),
        )
        for noun, rows in visible.items()
    ]


@require_POST
@accounts_only
def end_session(request: HttpRequest) -> HttpResponse:
    """End one session, or all but the current one."""
    user: User = request.user  # type: ignore[assignment]
    chosen = request.POST.get("session", "")
    if chosen == "others":
        number = sessions.end_others(user, request)
        messages.success(request, f"{counted(number, 'other session')} ended.")
    elif chosen.isascii() and chosen.isdigit() and sessions.end(user, int(chosen)):
        messages.success(request, "Session ended.")
    else:
        raise Http404
    events.record(request, user.get_username(), "sessions ended")
    return redirect("account")


class PasswordForm(PasswordChangeForm):
    def clean_old_password(self) -> str:
        """Check the old password; if the new one is refused, the session goes on."""
        old_password: str = self.cleaned_data["old_password"]
        if not passwords.is_right(self.user, old_password):
            raise ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return old_password


@method_decorator(accounts_only, name="dispatch")
class ChangePassword(PasswordChangeView):
    """Change the password; all other sessions end."""

    template_name = "pages/account_password.html"
    form_class = PasswordForm
    success_url = reverse_lazy("account")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user, now = request.user, timezone.now()
        if isinstance(user, User) and not user.has_usable_password():
            ways = " or ".join(door_reasons.ways_in(user, now))
            how = f": you log in with {ways}" if ways else ""
            raise NotAvailable(
                f"Your account has no password{how}. An administrator can set one, under"
                f" Users and roles or by manage.py account password {user.get_username()}."
            )
        if isinstance(user, User) and (closed := door_reasons.closed_door(user, now)) is not None:
            raise NotAvailable(f"The password of your account is inactive: {closed.reason}.")
        return super().dispatch(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Throttle as a login: the form also tells whether the old password is right."""
        with attempts.password_attempt(request, request.user.get_username()) as attempt:
            response = super().post(request, *args, **kwargs)
            if "old_password" not in getattr(self, "refused_fields", ()):
                attempt.succeed()
            return response

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        response = super().form_valid(form)
        note("password", self.request.user.get_username(), before="set", after="set anew")
        sessions.keep_current(self.request)
        if "revoke_tokens" in self.request.POST:
            revoked = tokens.revoke(self._tokens(), timezone.now())
            messages.success(self.request, f"{counted(revoked, 'API token')} revoked.")
        events.record(self.request, self.request.user.get_username(), "password changed")
        messages.success(self.request, "Password changed; all other sessions have ended.")
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "tokens": self._tokens().count()}

    def _tokens(self) -> ApiTokenQuerySet:
        return ApiToken.objects.filter(user=self.request.user.pk).usable(timezone.now())

    def form_invalid(self, form: PasswordChangeForm) -> HttpResponse:
        self.refused_fields = form.errors.keys()
        return super().form_invalid(form)


class ConfirmByPassword(ReauthenticateView):  # type: ignore[misc]  # allauth has no types
    template_name = "pages/account_confirm.html"


change_password = ChangePassword.as_view()
confirm_by_password = accounts_only(confirms_by(PASSWORD)(ConfirmByPassword.as_view()))

entries = [NavigationEntry("Account", "Account", "account", permits=lambda user: user.is_authenticated)]
urlpatterns = [
    path("account/", account, name="account"),
    path("account/", account, name="mfa_index"),
    path("account/", account, name="mfa_list_webauthn"),
    path("account/password/", change_password, name="account_change_password"),
    path("account/confirm/password/", confirm_by_password, name="account_reauthenticate"),
    path("account/sessions/end/", end_session, name="account-end-session"),
    path("admin/password_change/", change_password, name="admin-password-change"),
]
