"""What the provider sends, with types and bounds: discovery, keys, token response, claims. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
)
from pydantic_core import from_json

from monitor.core.clipping import clipped, printable
from monitor.core.egress.errors import TargetRefused
from monitor.core.egress.target import parse_target
from monitor.core.env import is_loopback
from monitor.web.accounts.provider.faults import ProviderUnusable
from monitor.web.accounts.provider.tenants import tenant_fault

MOST_SUBJECT = 255  # characters, by OpenID Connect
_MOST_FAULTS = 5  # in a message
_LATEST = 253_402_300_799  # the last second of the year 9999


def _plain(text: str) -> str:
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError("expected a text without control characters")
    return text


def _endpoint(url: str) -> str:
    """Return *url*; the browser or this host goes there with a secret, so it is encrypted."""
    try:
        target = parse_target(url)
    except TargetRefused as error:
        raise ValueError(str(error)) from None
    if target.scheme != "https" and not is_loopback(target.host):
        raise ValueError(f"expected https, got {clipped(url)!r}")
    if "#" in url:
        raise ValueError("expected a URL without a fragment")
    return url


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Text = Annotated[str, StringConstraints(max_length=255), AfterValidator(_plain)]
LongText = Annotated[str, StringConstraints(min_length=1, max_length=512 * 1024), AfterValidator(_plain)]
Endpoint = Annotated[str, StringConstraints(min_length=1, max_length=2048), AfterValidator(_endpoint)]
Texts = Annotated[tuple[Text, ...], Field(max_length=100, strict=False)]
TextOrTexts = Annotated[tuple[Text, ...], Field(max_length=100, strict=False), BeforeValidator(_listed)]
Subject = Annotated[str, StringConstraints(min_length=1, max_length=MOST_SUBJECT), AfterValidator(_plain)]
Time = Annotated[int | float, Field(ge=0, le=_LATEST)]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", hide_input_in_errors=True)


class Discovery(_Document):
    """The metadata of the provider (OpenID Connect Discovery 1.0; RFC 9207 has the last field)."""

    issuer: Annotated[str, StringConstraints(min_length=1, max_length=2048), AfterValidator(_plain)]
    authorization_endpoint: Endpoint
    token_endpoint: Endpoint
    jwks_uri: Endpoint
    userinfo_endpoint: Endpoint | None = None
    end_session_endpoint: Endpoint | None = None
    id_token_signing_alg_values_supported: Texts | None = None
    token_endpoint_auth_methods_supported: Texts | None = None
    authorization_response_iss_parameter_supported: bool | None = None


class KeySet(_Document):
    """The public keys of the provider (RFC 7517)."""

    keys: Annotated[tuple[dict[str, JsonValue], ...], Field(max_length=100, strict=False)]


class TokenResponse(_Document):
    access_token: LongText
    id_token: LongText
    token_type: Text | None = None


class TokenRefusal(_Document):
    """The answer of a token endpoint that refuses (RFC 6749, section 5.2)."""

    error: Text


class ProfileClaims(_Document):
    """The claims about a user that accounts have."""

    preferred_username: Annotated[Text, StringConstraints(max_length=150)] | None = None
    name: Text | None = None
    given_name: Text | None = None
    family_name: Text | None = None
    email: Text | None = None


class SubjectClaim(_Document):
    sub: Subject


class IdTokenClaims(SubjectClaim):
    """The claims by which an ID token is verified, and those that say how the user logged in there."""

    aud: TextOrTexts
    azp: Text | None = None
    nonce: Text
    at_hash: Text | None = None
    auth_time: Time | None = None
    acr: Text | None = None
    amr: TextOrTexts | None = None
    sid: Text | None = None


class LogoutClaims(_Document):
    """The claims of a logout token, which names a user, a session of a user there, or both."""

    sub: Subject | None = None
    sid: Text | None = None
    iat: Time
    jti: Text
    events: dict[str, JsonValue]


DocumentT = TypeVar("DocumentT", bound=_Document)


def parse_object(data: bytes, what: str) -> Mapping[str, Any]:
    """Return the JSON object in *data*; a message of an error names it *what*.

    Raises:
        ProviderUnusable: it is no JSON object.
    """
    try:
        parsed = from_json(data, allow_inf_nan=False)
    except ValueError as error:  # also of too many levels, and of halves of surrogate pairs
        raise ProviderUnusable(f"{what}: {printable(str(error))}") from None
    if not isinstance(parsed, dict):
        raise ProviderUnusable(f"{what}: expected a JSON object")
    return parsed


def parse(kind: type[DocumentT], values: Mapping[str, Any], what: str) -> DocumentT:
    """Return *values* as a *kind*; a message of an error names them *what*.

    Raises:
        ProviderUnusable: a value is missing, or has another type or length than it may have.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        faults = [
            printable(
                f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}", 200
            )
            for fault in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        more = f" and {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
        raise ProviderUnusable(f"{what}: {'; '.join(faults[:_MOST_FAULTS])}{more}") from None


def parse_discovery(data: bytes, configured: str) -> Discovery:
    """Return the discovery document of the issuer *configured*.

    Raises:
        ProviderUnusable: it is no such document, of another issuer, or of one for several tenants.
    """
    what = "discovery document"
    discovery = parse(Discovery, parse_object(data, what), what)
    if fault := tenant_fault(discovery.issuer):
        raise ProviderUnusable(f"{what}: issuer: {fault}")
    if discovery.issuer.removesuffix("/") != configured.removesuffix("/"):
        raise ProviderUnusable(
            f"{what}: issuer: expected that of GRIDCAST_OIDC_URL, {configured!r},"
            f" got {clipped(discovery.issuer)!r}"
        )
    return discovery
