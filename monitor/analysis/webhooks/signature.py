"""Sign webhooks as the Standard Webhooks specification says (version 1.0, symmetric signatures ``v1``).

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets as random
from collections.abc import Mapping, Sequence

VARIABLES = re.compile(r"GRIDCAST_WEBHOOK_[A-Z0-9_]+")  # other variables may hold secrets of the service
PREFIX = "whsec_"
LEAST_BYTES, MOST_BYTES = 24, 64


class InvalidSecret(Exception):
    """The environment variable with the secrets is missing or malformed; the message has no secret."""


def secrets_in(variable: str, environment: Mapping[str, str] = os.environ) -> Sequence[bytes]:
    """Return the keys in the environment variable *variable*: ``whsec_`` and base64, separated by spaces.

    Raises:
        InvalidSecret: there is none, or one of them is malformed.
    """
    words = environment.get(variable, "").split()
    if not words:
        raise InvalidSecret(f"no secret to sign with: {variable} is not set")
    return [_key(variable, word) for word in words]


def new_secret() -> str:
    """Return a random secret, as ``secrets_in`` reads it. gridcast does not store it."""
    return PREFIX + base64.b64encode(random.token_bytes(32)).decode()


def headers(message: str, at_seconds: int, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """Return the headers of a message with the id *message*, sent at *at_seconds* (Unix time).

    With several *keys* there is a signature by each: receivers accept one of them while a secret is rotated.
    Without keys the message is not signed.
    """
    content = b".".join((message.encode(), str(at_seconds).encode(), body))
    signatures = [base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode() for key in keys]
    signed = {"webhook-signature": " ".join(f"v1,{each}" for each in signatures)} if keys else {}
    return {"webhook-id": message, "webhook-timestamp": str(at_seconds), **signed}


def _key(variable: str, word: str) -> bytes:
    try:
        key = base64.b64decode(word.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not word.startswith(PREFIX) or not LEAST_BYTES <= len(key) <= MOST_BYTES:
        raise InvalidSecret(
            f"{variable}: expected {PREFIX} and the base64 of {LEAST_BYTES} to {MOST_BYTES} random bytes,"
            ' as echo "whsec_$(openssl rand -base64 32)" prints'
        )
    return key
