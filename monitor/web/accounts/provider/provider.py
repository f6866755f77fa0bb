"""allauth's OpenID Connect provider, with a nonce, whose accounts are found by issuer and subject.

allauth imports it with every command: what verifies logins, and takes a tenth of a second to import, is not
imported before there is one.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.web.accounts.provider.login import VerifiedLogin, VerifyingAdapter


class VerifyingProvider(OpenIDConnectProvider):  # type: ignore[misc]
    supports_token_authentication = False

    def get_oauth2_adapter(self, request: HttpRequest) -> VerifyingAdapter:
        from monitor.web.accounts.provider.login import VerifyingAdapter  # noqa: PLC0415 - see above

        return VerifyingAdapter(request, self.app.provider_id)

    def redirect(
        self, request: HttpRequest, process: str, next_url: str | None = None, data: Any = None, **kwargs: Any
    ) -> HttpResponse:
        """Redirect to the provider; the nonce binds the ID token to this browser's session."""
        nonce = secrets.token_urlsafe(32)
        params = kwargs.pop("auth_params", None) or self.get_auth_params()
        response: HttpResponse = super().redirect(
            request, process, next_url, data, auth_params={**params, "nonce": nonce}, nonce=nonce, **kwargs
        )
        return response

    def extract_uid(self, login: VerifiedLogin) -> str:
        from monitor.web.accounts.identities import uid_of  # noqa: PLC0415 - models are not loaded yet

        return uid_of(login.issuer, login.subject)

    def extract_extra_data(self, login: VerifiedLogin) -> dict[str, str]:
        return {"issuer": login.issuer, "username": login.profile.preferred_username or ""}

    def extract_common_fields(self, login: VerifiedLogin) -> dict[str, str | None]:
        profile = login.profile
        return {
            "username": _name_of(login),
            "email": profile.email,
            "name": profile.name,
            "first_name": profile.given_name,
            "last_name": profile.family_name,
        }

    def extract_email_addresses(self, _login: VerifiedLogin) -> list[Any]:
        """Return none: accounts are matched by the provider's subject, never by mail."""
        return []


def _name_of(login: VerifiedLogin) -> str:
    """Return the name of a new account of *login*: ``preferred_username``, or the e-mail address.

    The address names users of providers without user names, and those whose user name has characters that
    names do not have. One that the provider has not verified may be another person's.
    """
    from monitor.web.accounts.users import is_foreign_name  # noqa: PLC0415 - models are not loaded yet

    name, address = login.profile.preferred_username or "", login.profile.email or ""
    is_unverified = login.claims.get("email_verified", True) in (False, "false")
    if is_foreign_name(name) or is_unverified or not is_foreign_name(address):
        return name
    return address
