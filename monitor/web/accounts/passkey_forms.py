"""Forms for what browsers return of passkeys, and for the names of passkeys."""

from __future__ import annotations

import unicodedata

from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    EditWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from django import forms
from django.core.exceptions import ValidationError

from monitor.web.accounts import events, factor_failures, passkeys
from monitor.web.accounts.passkeys import MOST_CHARACTERS, PasskeyRefused
from monitor.web.accounts.relying_party import PasskeysUnavailable

MOST_OF_NAME = 60


def passkey_name(text: str) -> str:
    """Return *text* as the name of a passkey.

    Raises:
        ValidationError: it has characters that cannot be seen, or nothing but punctuation.
    """
    name = " ".join(unicodedata.normalize("NFC", text).split(" ")).strip()
    if not name.isprintable() or not any(each.isalnum() for each in name):
        raise ValidationError(f"Expected up to {MOST_OF_NAME} visible characters with a letter or a digit.")
    return name


def _answer_field() -> forms.CharField:
    return forms.CharField(max_length=MOST_CHARACTERS, widget=forms.HiddenInput)


class AddPasskeyForm(AddWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    name = forms.CharField(required=False, max_length=MOST_OF_NAME)
    credential = _answer_field()

    def clean_name(self) -> str:
        if name := self.cleaned_data["name"]:
            return passkey_name(name)
        return str(get_adapter().generate_authenticator_name(self.user, Authenticator.Type.WEBAUTHN))

    def clean(self) -> None:
        """Check the new passkey, unless its name is refused: the user then adds it again."""
        if self.errors:
            return
        is_passwordless = self.cleaned_data["passwordless"]
        answer = self.cleaned_data["credential"]
        try:
            self.cleaned_data["credential"] = passkeys.complete_registration(
                context.request, self.user, answer, is_passwordless=is_passwordless
            )
        except (PasskeyRefused, PasskeysUnavailable) as error:
            events.record(context.request, self.user.get_username(), f"passkey not added: {error}")
            self.add_error("credential", str(error))


class _PasskeyUse(forms.Form):
    credential = _answer_field()

    def clean_credential(self) -> Authenticator:
        user = self.user  # type: ignore[attr-defined]  # of allauth's forms
        try:
            return passkeys.complete_authentication(context.request, user, self.cleaned_data["credential"])
        except (PasskeyRefused, PasskeysUnavailable) as error:
            name = user.get_username() if user else getattr(error, "name", "")
            events.refuse(context.request, name, f"passkey: {error}")
            if user is not None:  # its password was right
                factor_failures.note_failure(context.request, user)
            raise ValidationError(str(error)) from error


class SecondFactorPasskeyForm(_PasskeyUse, AuthenticateWebAuthnForm):  # type: ignore[misc]
    pass


class LoginPasskeyForm(_PasskeyUse, LoginWebAuthnForm):  # type: ignore[misc]
    pass


class ConfirmPasskeyForm(_PasskeyUse, ReauthenticateWebAuthnForm):  # type: ignore[misc]
    pass


class RenamePasskeyForm(EditWebAuthnForm):  # type: ignore[misc]
    name = forms.CharField(max_length=MOST_OF_NAME)

    def clean_name(self) -> str:
        return passkey_name(self.cleaned_data["name"])
