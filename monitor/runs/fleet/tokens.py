"""Authenticate the tokens with which agents sign their requests (docs/reporter-protocol.md).

Errors::

    TokenRefused
    |-- InvalidToken          malformed, of an unknown key or another server, or its signature is wrong
    |-- RevokedKey            the key was revoked, or its reporter is not remote any more
    |-- TokenExpired          its time is over, or the agent's clock is slow
    `-- TokenNotYetValid      the agent's clock is fast
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.models import ReporterKey
from monitor.runs.fleet import signatures
from monitor.runs.fleet.signatures import Purpose
from reporters.fields import Fields, Unfit, parse_object

if TYPE_CHECKING:
    from datetime import datetime

PREFIX = "gcrep"
MAX_SECONDS = 15 * 60
LEEWAY_SECONDS = 30  # the agent estimates the server's clock
_MAX_PAYLOAD_BYTES = 1_000
_MAX_CHARACTERS = 8_000
_LATEST = 1e11  # a time in seconds since 1970


class TokenRefused(Exception):
    """The token is refused; *code* is the stable name of the reason, the message explains it."""

    code = ""


class InvalidToken(TokenRefused):
    code = "invalid_token"


class RevokedKey(TokenRefused):
    code = "revoked"


class TokenExpired(TokenRefused):
    code = "token_expired"


class TokenNotYetValid(TokenRefused):
    code = "token_not_yet_valid"


@dataclass(frozen=True)
class _Claims:
    """The payload of a token; times in seconds since 1970."""

    reporter: str
    key: str
    server: str
    issued_at: float
    expires_at: float


def authenticate(token: str, now: datetime) -> ReporterKey:
    """Return the key, with its reporter, that signed *token*; one query finds both.

    Raises:
        TokenRefused: as the module describes.
    """
    payload, signature = _parts(token)
    claims = _claims(_decoded(payload))
    key = ReporterKey.objects.select_related("reporter").filter(fingerprint=claims.key).first()
    if key is None or key.reporter.name != claims.reporter:
        raise InvalidToken("the key is not one of this reporter: enrol again")
    if claims.server != signatures.server_fingerprint():
        raise InvalidToken("the token is for another server, or the key of this server changed: enrol again")
    try:
        signed, text = payload.encode(), _decoded(signature).decode("ascii")
        signatures.verify(key.method, key.public_key, Purpose.TOKEN, signed, text)
    except (signatures.InvalidReporterSignature, UnicodeDecodeError) as error:
        raise InvalidToken(str(error)) from None
    if key.revoked_at is not None or not key.reporter.is_remote:
        raise RevokedKey("the key was revoked: ask for a new code and enrol again")
    _check_times(claims, now.timestamp())
    return key


def _parts(token: str) -> tuple[str, str]:
    parts = token.split(".")
    if len(token) > _MAX_CHARACTERS or not token.isascii() or len(parts) != 3 or parts[0] != PREFIX:
        raise InvalidToken(f"expected a token {PREFIX}.PAYLOAD.SIGNATURE")
    return parts[1], parts[2]


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars="-_", validate=True)
    except binascii.Error as error:
        raise InvalidToken(f"expected base64url without padding: {error}") from None


def _claims(payload: bytes) -> _Claims:
    try:
        fields = Fields(parse_object(payload, max_bytes=_MAX_PAYLOAD_BYTES))
        return _Claims(
            reporter=fields.text("reporter"),
            key=fields.text("key"),
            server=fields.text("server"),
            issued_at=fields.number("issued_at", minimum=0, maximum=_LATEST),
            expires_at=fields.number("expires_at", minimum=0, maximum=_LATEST),
        )
    except Unfit as error:
        raise InvalidToken(f"payload: {error}") from None


def _check_times(claims: _Claims, now: float) -> None:
    if claims.expires_at - claims.issued_at > MAX_SECONDS:
        raise InvalidToken(f"a token is valid for at most {MAX_SECONDS} s")
    if claims.expires_at <= now:
        raise TokenExpired(f"the token expired {now - claims.expires_at:.0f} s ago")
    if claims.issued_at > now + LEEWAY_SECONDS:
        raise TokenNotYetValid(f"the token was issued {claims.issued_at - now:.0f} s after now")
