"""Forms for the codes of second factors: counted where they can be guessed, and each code is valid once."""

from __future__ import annotations

from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm

from monitor.web.accounts import attempts, codes, events, factor_failures


class _CountedCode:
    """Counts wrong codes, and says of a used code that it was used."""

    def clean_code(self) -> str:
        user = self.user  # type: ignore[attr-defined]  # of allauth's form
        code: str = self.cleaned_data["code"]  # type: ignore[attr-defined]
        with attempts.code_attempt(context.request, user) as attempt:
            try:
                self.authenticator = codes.use(user, code)
            except codes.UsedCode as error:
                reason = f"code used already ({error.factor.type})"
                events.refuse(context.request, user.get_username(), reason)
                factor_failures.note_failure(context.request, user)
                raise get_adapter().validation_error(f"used_{error.factor.type}") from error
            except codes.WrongCode as error:
                if error.factor is not None:
                    self._emit_authentication_failed(error.factor)  # type: ignore[attr-defined]
                raise get_adapter().validation_error("incorrect_code") from error
            attempt.succeed()
            return code


class LoginCodeForm(_CountedCode, AuthenticateForm):  # type: ignore[misc]  # allauth has no types
    pass


class ConfirmCodeForm(_CountedCode, ReauthenticateForm):  # type: ignore[misc]
    pass


class AddAppForm(ActivateTOTPForm):  # type: ignore[misc]
    """The first code of a new app. *counters*: those at which the app shows it, which must be remembered."""

    def clean_code(self) -> str:
        code: str = self.cleaned_data["code"]
        codes.lock_factors(self.user)  # of two forms at once, the second then sees the app of the first
        if Authenticator.objects.filter(user=self.user, type=Authenticator.Type.TOTP).exists():
            raise get_adapter().validation_error("app_exists")
        self.counters = codes.matching_counters(self.secret, code)
        if not self.counters:
            raise get_adapter().validation_error("incorrect_code")
        return code
