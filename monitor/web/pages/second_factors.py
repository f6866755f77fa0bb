"""Second factors of one's own account: authenticator app, passkeys, recovery codes.

Each change, and the recovery codes, ask for the password or a second factor again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.mfa.base.views import ReauthenticateView
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import (
    DownloadRecoveryCodesView,
    GenerateRecoveryCodesView,
    ViewRecoveryCodesView,
)
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.internal import flows
from allauth.mfa.webauthn.views import (
    AddWebAuthnView,
    EditWebAuthnView,
    ReauthenticateWebAuthnView,
    RemoveWebAuthnView,
)
from django.conf import settings
from django.shortcuts import redirect, render
from django.urls import path, reverse_lazy

from monitor.depot.access.audit_trail import note
from monitor.models.passkey import store_passwordless
from monitor.web.accounts import codes, doors, passkeys
from monitor.web.accounts.confirmation import CODE, PASSKEY
from monitor.web.accounts.factor_duty import factor_duty
from monitor.web.accounts.relying_party import PasskeysUnavailable, relying_party
from monitor.web.pages.http.access import accounts_only
from monitor.web.pages.http.confirmed import confirmed, confirms_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse, HttpResponseBase

ACCOUNT = reverse_lazy("account")


def _confirming_page(way: str, view: Any, template: str) -> Callable[..., HttpResponseBase]:
    page: Callable[..., HttpResponseBase] = view.as_view(template_name=f"pages/{template}")
    return accounts_only(confirms_by(way)(page))


def _confirmed_page(view: Any, template: str, **options: Any) -> Callable[..., HttpResponseBase]:
    page: Callable[..., HttpResponseBase] = view.as_view(template_name=f"pages/{template}", **options)
    return accounts_only(confirmed(page))


class AddApp(ActivateTOTPView):  # type: ignore[misc]  # allauth has no types
    def form_valid(self, form: Any) -> HttpResponse:
        """Add the app; the code that added it does not log in as well."""
        response: HttpResponse = super().form_valid(form)
        app = Authenticator.objects.get(user=self.request.user, type=Authenticator.Type.TOTP)
        codes.remember(app, form.counters)
        return response


class _FactorsHeld:
    """Holds the factors of the user: what is stored is what was read, with used codes and counters."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with codes.locked_factors(request.user):  # type: ignore[arg-type]  # members only
            response: HttpResponse = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
        return response


class RecoveryCodeList(_FactorsHeld, ViewRecoveryCodesView):  # type: ignore[misc]
    pass


class RecoveryCodeDownload(_FactorsHeld, DownloadRecoveryCodesView):  # type: ignore[misc]
    pass


class RemoveApp(_FactorsHeld, DeactivateTOTPView):  # type: ignore[misc]
    pass


class AddPasskey(AddWebAuthnView):  # type: ignore[misc]
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super(AddWebAuthnView, self).get_context_data(**kwargs)
        try:
            options = passkeys.begin_registration(self.request, self.request.user)
        except PasskeysUnavailable as error:
            return {**context, "passkeys_unavailable": str(error)}
        return {**context, "js_data": {"creation_options": options}}

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the passkey, and whether it logs in without the password."""
        name, credential = form.cleaned_data["name"], form.cleaned_data["credential"]
        passkey, new_codes = flows.add_authenticator(self.request, name=name, credential=credential)
        store_passwordless(passkey, is_passwordless=form.cleaned_data["passwordless"])
        self.did_generate_recovery_codes = new_codes is not None
        return redirect(self.get_success_url())


class RenamePasskey(_FactorsHeld, EditWebAuthnView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        before = Authenticator.objects.get(pk=self.get_object().pk).wrap().name
        response: HttpResponse = super().form_valid(form)
        note("passkey", self.request.user.get_username(), before=before, after=form.cleaned_data["name"])
        return response


class RemovePasskey(_FactorsHeld, RemoveWebAuthnView):  # type: ignore[misc]
    pass


class ConfirmByPasskey(ReauthenticateWebAuthnView):  # type: ignore[misc]
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super(ReauthenticateWebAuthnView, self).get_context_data(**kwargs)
        try:
            options = passkeys.begin_authentication(self.request, self.request.user)
        except PasskeysUnavailable as error:
            return {**context, "passkeys_unavailable": str(error)}
        return {**context, "js_data": {"request_options": options}}

    def form_invalid(self, form: Any) -> HttpResponse:
        response: HttpResponse = self.render_to_response(self.get_context_data(form=form))
        return response


@accounts_only
def due(request: HttpRequest) -> HttpResponse:
    """Say that the user needs a second factor, where no other page opens any more."""
    duty = factor_duty(request)
    if duty is None or not duty.is_over:
        return redirect("account")
    context: dict[str, Any] = {"duty": duty}
    user: User = request.user  # type: ignore[assignment]  # it has a duty
    if settings.GRIDCAST_OIDC_SECOND_FACTOR_VALUES and doors.current_identities(user):
        context["provider"] = settings.GRIDCAST_IDENTITY_PROVIDER
    try:
        relying_party(request)
    except PasskeysUnavailable as error:
        context["passkeys_unavailable"] = str(error)
    return render(request, "pages/second_factor_due.html", context)


add_app = _confirmed_page(AddApp, "account_app.html")
remove_app = _confirmed_page(RemoveApp, "account_app_remove.html", success_url=ACCOUNT)
recovery_codes = _confirmed_page(RecoveryCodeList, "account_recovery_codes.html")
new_recovery_codes = _confirmed_page(GenerateRecoveryCodesView, "account_recovery_codes_new.html")
download_recovery_codes = _confirmed_page(RecoveryCodeDownload, "account_recovery_codes.txt")
add_passkey = _confirmed_page(AddPasskey, "account_passkey.html")
rename_passkey = _confirmed_page(RenamePasskey, "account_passkey_rename.html", success_url=ACCOUNT)
remove_passkey = _confirmed_page(RemovePasskey, "account_passkey_remove.html", success_url=ACCOUNT)
confirm_by_code = _confirming_page(CODE, ReauthenticateView, "account_confirm.html")
confirm_by_passkey = _confirming_page(PASSKEY, ConfirmByPasskey, "account_confirm_passkey.html")

urlpatterns = [
    path("account/second-factor/", due, name="second-factor-due"),
    path("account/app/", add_app, name="mfa_activate_totp"),
    path("account/app/remove/", remove_app, name="mfa_deactivate_totp"),
    path("account/recovery-codes/", recovery_codes, name="mfa_view_recovery_codes"),
    path("account/recovery-codes/new/", new_recovery_codes, name="mfa_generate_recovery_codes"),
    path("account/recovery-codes/download/", download_recovery_codes, name="mfa_download_recovery_codes"),
    path("account/passkeys/add/", add_passkey, name="mfa_add_webauthn"),
    path("account/passkeys/<int:pk>/rename/", rename_passkey, name="mfa_edit_webauthn"),
    path("account/passkeys/<int:pk>/remove/", remove_passkey, name="mfa_remove_webauthn"),
    path("account/confirm/code/", confirm_by_code, name="mfa_reauthenticate"),
    path("account/confirm/passkey/", confirm_by_passkey, name="mfa_reauthenticate_webauthn"),
]
