"""Verify ID tokens (OpenID Connect Core 1.0, section 3.1.3.7) and logout tokens, by PyJWT. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.algorithms import get_default_algorithms

from monitor.core.clipping import clipped, printable
from monitor.web.accounts.provider.documents import (
    Discovery,
    IdTokenClaims,
    KeySet,
    LogoutClaims,
    parse,
    parse_object,
)
from monitor.web.accounts.provider.faults import LoginRefused, ProviderUnusable

LEEWAY_SECONDS = 60  # that clocks may differ
# Signatures by public keys: with a shared secret, each of its owners could make tokens.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_KEY_TYPES = {"R": "RSA", "P": "RSA", "E": "EC"}  # by the first letter of an algorithm, except EdDSA
_ID_TOKEN, _LOGOUT_TOKEN = "ID token", "logout token"
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
LOGOUT_SECONDS = 300  # that a logout token may have been under way


@dataclass(frozen=True)
class ExpectedToken:
    """What an ID token must say, and the access token that came with it."""

    discovery: Discovery
    client_id: str
    nonce: str
    access_token: str


@dataclass(frozen=True)
class Signer:
    """The provider that signs tokens for us; *newer_keys* is called if the key of a token is unknown."""

    discovery: Discovery
    client_id: str
    keys: KeySet
    newer_keys: Callable[[], KeySet]


class _StrictTokens(jwt.PyJWT):
    """Parses the claims as every other document of the provider."""

    def _decode_payload(self, decoded: dict[str, Any]) -> dict[str, Any]:
        return dict(parse_object(decoded["payload"], "token"))


def verify_id_token(
    token: str, expected: ExpectedToken, keys: KeySet, newer_keys: Callable[[], KeySet]
) -> tuple[IdTokenClaims, Mapping[str, Any]]:
    """Return the claims of *token*, the known ones and all; *newer_keys* is called if its key is unknown.

    Raises:
        ProviderUnusable: the token is not one of the provider for us.
        LoginRefused: it is too old, or of a login that was begun elsewhere.
    """
    signer = Signer(expected.discovery, expected.client_id, keys, newer_keys)
    required = ("iss", "sub", "aud", "exp", "iat", "nonce")
    values, algorithm = _verified(token, _ID_TOKEN, signer, required)
    claims = parse(IdTokenClaims, values, _ID_TOKEN)
    if expected.client_id not in claims.aud or claims.azp not in _parties(claims, expected.client_id):
        raise ProviderUnusable(f"{_ID_TOKEN}: it was issued to another client")
    if not hmac.compare_digest(claims.nonce.encode(), expected.nonce.encode()):
        raise LoginRefused(f"{_ID_TOKEN}: its nonce is of another login")
    if claims.at_hash is not None and claims.at_hash != _half_hash(expected.access_token, algorithm):
        raise ProviderUnusable(f"{_ID_TOKEN}: at_hash is of another access token")
    return claims, values


def verify_logout_token(token: str, signer: Signer, now: float) -> LogoutClaims:
    """Return the claims of *token* (OpenID Connect Back-Channel Logout 1.0, section 2.6).

    Raises:
        ProviderUnusable: it is no logout token of the provider for us, is too old, or names neither
            subject nor session.
    """
    values, _ = _verified(token, _LOGOUT_TOKEN, signer, ("iss", "aud", "iat", "jti", "events"))
    if "nonce" in values:  # else an ID token could be used as one
        raise ProviderUnusable(f"{_LOGOUT_TOKEN}: it has a nonce")
    claims = parse(LogoutClaims, values, _LOGOUT_TOKEN)
    if LOGOUT_EVENT not in claims.events:
        raise ProviderUnusable(f"{_LOGOUT_TOKEN}: it has not the event of a logout")
    if claims.sub is None and claims.sid is None:
        raise ProviderUnusable(f"{_LOGOUT_TOKEN}: expected sub or sid")
    if claims.iat < now - LOGOUT_SECONDS:
        raise ProviderUnusable(f"{_LOGOUT_TOKEN}: it was issued {now - claims.iat:.0f} s ago")
    return claims


def _verified(
    token: str, what: str, signer: Signer, required: Sequence[str]
) -> tuple[Mapping[str, Any], str]:
    """Return the claims of *token*, whose signature is the provider's, and the algorithm of the signature."""
    algorithm, key_id = _header(token, what, signer.discovery)
    key = _key(signer.keys, algorithm, key_id) or _key(signer.newer_keys(), algorithm, key_id)
    if key is None:
        named = f" {clipped(key_id)!r}" if key_id is not None else ""
        raise ProviderUnusable(f"{what}: the provider publishes no key{named} for {algorithm}")
    try:
        values = _StrictTokens().decode(
            token,
            key,
            algorithms=[algorithm],
            audience=signer.client_id,
            issuer=signer.discovery.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": list(required), "enforce_minimum_key_length": True},
        )
    except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError) as error:
        raise ProviderUnusable(f"{what}: {error}: compare the clocks of both hosts") from None
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise ProviderUnusable(f"{what}: {printable(str(error))}") from None
    return values, algorithm


def _header(token: str, what: str, discovery: Discovery) -> tuple[str, str | None]:
    """Return the algorithm, a permitted one, and the id of the key."""
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError) as error:  # ValueError: a character that is not ASCII
        raise ProviderUnusable(f"{what}: {printable(str(error))}") from None
    announced = discovery.id_token_signing_alg_values_supported
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS or (announced is not None and algorithm not in announced):
        raise ProviderUnusable(f"{what}: the algorithm {clipped(repr(algorithm))} is not permitted")
    return str(algorithm), header.get("kid")


def _key(keys: KeySet, algorithm: str, key_id: str | None) -> jwt.PyJWK | None:
    """Return the key for *algorithm* with *key_id*; without an id, only a single such key is one."""
    key_type = "OKP" if algorithm == "EdDSA" else _KEY_TYPES[algorithm[0]]
    suitable = [
        key
        for key in keys.keys
        if key.get("kty") == key_type
        and key.get("use") in (None, "sig")
        and key.get("alg") in (None, algorithm)
        and (key_id is None or key.get("kid") == key_id)
    ]
    if len(suitable) != 1:
        return None
    try:
        return jwt.PyJWK(suitable[0], algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        raise ProviderUnusable(f"key {clipped(repr(key_id))}: {printable(str(error))}") from None


def _parties(claims: IdTokenClaims, client_id: str) -> set[str | None]:
    """Return the values that ``azp`` may have: with several audiences, it must name us."""
    return {client_id} if len(claims.aud) > 1 else {client_id, None}


def _half_hash(access_token: str, algorithm: str) -> str:
    if algorithm == "EdDSA":  # Ed25519 hashes by SHA-512
        digest = hashlib.sha512(access_token.encode()).digest()
    else:
        digest = get_default_algorithms()[algorithm].compute_hash_digest(access_token.encode())
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
