"""Second factors of one's own account: authenticator app, passkeys, recovery codes.

Each change, and the recovery codes, ask for the password or a second factor again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.mfa.base.views import ReauthenticateView
from allauth.mfa.recovery_codes.views import (
    DownloadRecoveryCodesView,
    GenerateRecoveryCodesView,
    ViewRecoveryCodesView,
)
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.views import (
    AddWebAuthnView,
    EditWebAuthnView,
    ReauthenticateWebAuthnView,
    RemoveWebAuthnView,
)
from django.urls import path, reverse_lazy

from monitor.pages.http.access import accounts_only
from monitor.pages.http.confirmed import confirmed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponseBase

ACCOUNT = reverse_lazy("account")


def _page(view: Any, template: str, **options: Any) -> Callable[..., HttpResponseBase]:
    page: Callable[..., HttpResponseBase] = view.as_view(template_name=f"pages/{template}", **options)
    return accounts_only(page)


def _confirmed_page(view: Any, template: str, **options: Any) -> Callable[..., HttpResponseBase]:
    page: Callable[..., HttpResponseBase] = view.as_view(template_name=f"pages/{template}", **options)
    return accounts_only(confirmed(page))


add_app = _confirmed_page(ActivateTOTPView, "account_app.html")
remove_app = _confirmed_page(DeactivateTOTPView, "account_app_remove.html", success_url=ACCOUNT)
recovery_codes = _confirmed_page(ViewRecoveryCodesView, "account_recovery_codes.html")
new_recovery_codes = _confirmed_page(GenerateRecoveryCodesView, "account_recovery_codes_new.html")
download_recovery_codes = _confirmed_page(DownloadRecoveryCodesView, "account_recovery_codes.txt")
add_passkey = _confirmed_page(AddWebAuthnView, "account_passkey.html")
rename_passkey = _confirmed_page(EditWebAuthnView, "account_passkey_rename.html", success_url=ACCOUNT)
remove_passkey = _confirmed_page(RemoveWebAuthnView, "account_passkey_remove.html", success_url=ACCOUNT)
confirm_by_code = _page(ReauthenticateView, "account_confirm.html")
confirm_by_passkey = _page(ReauthenticateWebAuthnView, "account_confirm_passkey.html")

urlpatterns = [
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
