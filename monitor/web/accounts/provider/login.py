"""allauth's OpenID Connect, with logins that are verified: its provider, adapter, client and callback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from allauth.socialaccount.internal import statekit
from allauth.socialaccount.models import SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Client
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property

from monitor.core.clipping import clipped
from monitor.web.accounts.provider import metadata
from monitor.web.accounts.provider.documents import ProfileClaims, SubjectClaim, TokenResponse, parse
from monitor.web.accounts.provider.exchange import fetch_userinfo, redeem_code, waiting_place
from monitor.web.accounts.provider.faults import LoginRefused, ProviderBusy, ProviderFault, ProviderUnusable
from monitor.web.accounts.provider.tokens import ExpectedToken, verify_id_token

if TYPE_CHECKING:
    from allauth.socialaccount.models import SocialApp, SocialLogin
    from django.http import HttpRequest, HttpResponse

# Errors of authorization (RFC 6749, section 4.1.2.1) that the user has not caused.
_FAULTS: Mapping[str, type[ProviderFault]] = {
    "temporarily_unavailable": ProviderBusy,
    **dict.fromkeys(
        (
            "invalid_request",
            "invalid_scope",
            "server_error",
            "unauthorized_client",
            "unsupported_response_type",
        ),
        ProviderUnusable,
    ),
}


@dataclass(frozen=True)
class VerifiedLogin:
    """A login at the provider, whose ID token has been verified.

    Attributes:
        issuer, subject: identify the user, for ever; at most 255 characters of *subject*.
        auth_time: Unix time at which the user was authenticated there; None if the provider does not say.
        amr, acr: how the user was authenticated there.
        provider_session: names the session there; None if the provider does not say.
        claims: all claims, of the ID token, completed by userinfo.
    """

    issuer: str
    subject: str
    auth_time: float | None
    amr: tuple[str, ...]
    acr: str
    provider_session: str | None
    profile: ProfileClaims
    claims: Mapping[str, Any]


class VerifyingClient(OAuth2Client):  # type: ignore[misc]  # allauth has no types
    def get_redirect_url(self, authorization_url: str, scope: Any, extra_params: Mapping[str, str]) -> str:
        """Return the URL of the login there; the endpoint may have a query of its own."""
        _, _, query = super().get_redirect_url("", scope, extra_params).partition("?")
        return f"{authorization_url}{'&' if '?' in authorization_url else '?'}{query}"

    def get_access_token(
        self, code: str, pkce_code_verifier: str | None = None, extra_data: Any = None
    ) -> TokenResponse:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback_url,
            **({"code_verifier": pkce_code_verifier} if pkce_code_verifier else {}),
            **(extra_data or {}),
        }
        return redeem_code(
            self.access_token_url, form, self.consumer_key, self.consumer_secret, is_basic=self.basic_auth
        )


class VerifyingAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    client_class = VerifyingClient
    login_state: Mapping[str, Any] | None = None  # of the login that the callback ends
    place: ExitStack  # holds the waiting place of the callback
    on_verified: Callable[[HttpRequest], None] | None = None  # called before the login changes anything

    @cached_property
    def published(self) -> metadata.PublishedMetadata:
        return metadata.published_metadata(self._issuer, timezone.now())

    @property
    def basic_auth(self) -> bool:
        """Return whether a header authenticates us; it is the default of Discovery, section 3."""
        methods = self.published.discovery.token_endpoint_auth_methods_supported
        return methods is None or ("client_secret_basic" in methods and "client_secret_post" not in methods)

    @property
    def openid_config(self) -> dict[str, Any]:
        return self.published.discovery.model_dump(exclude_none=True)

    def check_issuer(self, request: HttpRequest) -> None:
        """Return unless the answer in *request* is of another issuer (RFC 9207).

        Raises:
            LoginRefused: it is, or names none although the provider always does.
        """
        named = request.GET.getlist("iss")
        discovery = self.published.discovery
        if named == [discovery.issuer]:
            return
        if named or discovery.authorization_response_iss_parameter_supported:
            raise LoginRefused(f"the answer names the issuer {clipped(repr(named))}")

    def get_access_token_data(
        self, request: HttpRequest, app: SocialApp, client: VerifyingClient, pkce_code_verifier: Any = None
    ) -> VerifiedLogin:
        """Ask the provider for all that the login needs."""
        tokens = client.get_access_token(request.GET["code"], pkce_code_verifier)
        login = self._verified(app, tokens)
        self.place.close()
        return login

    def parse_token(self, _login: VerifiedLogin) -> SocialToken:
        """Return an empty token: the access token has served its purpose, and is not kept."""
        return SocialToken(token="")

    def complete_login(
        self, request: HttpRequest, _app: SocialApp, _token: SocialToken, response: VerifiedLogin, **_: Any
    ) -> SocialLogin:
        if self.on_verified is not None:
            self.on_verified(request)
        login = self.get_provider().sociallogin_from_response(request, response)
        login.verified_login = response
        return login

    @property
    def _issuer(self) -> str:
        return str(self.get_provider().app.settings["server_url"])

    def _verified(self, app: SocialApp, tokens: TokenResponse) -> VerifiedLogin:
        nonce = (self.login_state or {}).get("nonce")
        if not nonce:  # the login began before an upgrade
            raise LoginRefused("the login was begun without a nonce")
        discovery, issuer = self.published.discovery, self._issuer
        expected = ExpectedToken(discovery, app.client_id, nonce, tokens.access_token)
        claims, values = verify_id_token(
            tokens.id_token,
            expected,
            self.published.keys,
            lambda: metadata.newer_keys(issuer, timezone.now(), nullcontext()),
        )
        if discovery.userinfo_endpoint is not None:
            userinfo = fetch_userinfo(discovery.userinfo_endpoint, tokens.access_token)
            values = completed(values, userinfo)
        return VerifiedLogin(
            issuer=discovery.issuer,
            subject=claims.sub,
            auth_time=claims.auth_time,
            amr=claims.amr or (),
            acr=claims.acr or "",
            provider_session=claims.sid,
            profile=parse(ProfileClaims, values, "claims"),
            claims=MappingProxyType(dict(values)),
        )


def completed(claims: Mapping[str, Any], userinfo: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the *claims* of an ID token with those of *userinfo* that it lacks.

    Raises:
        ProviderUnusable: *userinfo* is about another user.
    """
    if parse(SubjectClaim, userinfo, "userinfo").sub != claims["sub"]:
        raise ProviderUnusable("userinfo: sub is not that of the ID token")
    present = {name: value for name, value in claims.items() if value is not None}
    return {**userinfo, **present}


class VerifyingCallback(OAuth2CallbackView):  # type: ignore[misc]
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.adapter.check_issuer(request)
        error = request.GET.get("error", "")
        if error == "invalid_request" and self._asked_for_a_choice(request):
            return redirect(f"{reverse('openid_connect_login')}?choose=login")
        if fault := _FAULTS.get(error):
            raise fault(f"the provider answered {error}")
        with ExitStack() as self.adapter.place:
            response: HttpResponse = super().dispatch(request, *args, **kwargs)
        return response

    def _asked_for_a_choice(self, request: HttpRequest) -> bool:
        """Return whether the login asked for a choice of accounts, which not every provider has."""
        stashed = statekit.get_states(request).get(request.GET.get("state", ""))
        return stashed is not None and bool(stashed[0].get("asks_for_choice"))

    def _get_state(self, request: HttpRequest, provider: Any) -> Any:
        """Give the adapter the state, which has the nonce; allauth gives it the PKCE verifier only.

        One place is taken for all requests to the provider, and before the state is used up: without one, the
        visitor may load the same page again.
        """
        if "code" in request.GET and request.GET.get("state") in statekit.get_states(request):
            self.adapter.place.enter_context(waiting_place())
        state, response = super()._get_state(request, provider)
        self.adapter.login_state = state
        return state, response
