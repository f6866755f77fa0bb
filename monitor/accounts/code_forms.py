"""Forms for the code of a second factor: throttled, and a code is valid once."""

from __future__ import annotations

from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from django.core.cache import cache

from monitor.accounts import attempts

_VALID_SECONDS = 120  # longer than a code is accepted: three periods of 30 s


class _CountedCode:
    """Counts wrong codes, and refuses a used code for longer than one period, as allauth does."""

    def clean_code(self) -> str:
        user = self.user  # type: ignore[attr-defined]  # of allauth's form
        with attempts.code_attempt(context.request, user) as attempt:
            code: str = super().clean_code()  # type: ignore[misc]
            if not cache.add(f"code-used:{user.pk}:{code}", value=True, timeout=_VALID_SECONDS):
                raise get_adapter().validation_error("incorrect_code")
            attempt.succeed()
            return code


class LoginCodeForm(_CountedCode, AuthenticateForm):  # type: ignore[misc]  # allauth has no types
    pass


class ConfirmCodeForm(_CountedCode, ReauthenticateForm):  # type: ignore[misc]
    pass
