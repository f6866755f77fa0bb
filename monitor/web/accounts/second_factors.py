"""What django-allauth asks about second factors: authenticator apps, recovery codes and passkeys."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.http.request import split_domain_port
from django.utils.encoding import force_bytes

from monitor.web.accounts import login_stage

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": "Wrong code. If an app shows it now, check the clock of its device.",
        "used_totp": "This code was used already. Wait until the app shows the next one.",
        "used_recovery_codes": "This recovery code was used already. Enter another one.",
        "app_exists": "This account has an authenticator app already.",
        "unreadable": "The second factors of this account cannot be read: gridcast's secret key has changed."
        " An administrator removes them: manage.py account remove-second-factors %s",
    }

    def encrypt(self, text: str) -> str:
        """Encrypt a secret: a reader of a backup of the depot must not be able to compute codes."""
        return _keys().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return the secret.

        Raises:
            ValidationError: it was encrypted with another secret key.
        """
        try:
            return _keys().decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            raise self.validation_error("unreadable", _name_of_user()) from None

    def get_totp_label(self, user: AbstractBaseUser) -> str:
        return user.get_username()

    def get_totp_issuer(self) -> str:
        return f"gridcast {split_domain_port(context.request.get_host())[0]}"

    def generate_authenticator_name(self, user: AbstractBaseUser, type: str) -> str:
        number = Authenticator.objects.filter(user_id=user.pk, type=type).count() + 1
        return "Passkey" if number == 1 else f"Passkey {number}"


def _name_of_user() -> str:
    """Return the name of the user whose factors the present request reads; that of a command has none."""
    request = context.request
    if request is not None and request.user.is_authenticated:
        return str(request.user)
    waiting = login_stage.waiting_login(request) if request is not None else None
    return str(waiting.login.user) if waiting is not None else "USER"


def _keys() -> MultiFernet:
    """Return the keys: the first encrypts, and all decrypt."""
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    digests = [hashlib.sha256(b"monitor.accounts.second_factors:" + force_bytes(key)) for key in secrets]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest.digest())) for digest in digests])
