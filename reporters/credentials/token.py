"""Bearer tokens in files: JSON web tokens (RFC 7519), macaroons, and opaque tokens.

Only the period of validity is read; only the issuer can verify a token.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from reporters.base import Credential, CredentialUnfit
from reporters.credentials import files
from reporters.credentials.lifetime import Lifetime

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_LONGEST_BYTES = 65536  # no server accepts longer headers
_HEADER_VALUE = re.compile(r"[!-~]+", re.ASCII)
_BEFORE = b"before:"
_DIGITS = 4  # a packet of a macaroon begins with its length in hexadecimal


class BearerToken(Credential):
    """A token in *file*, which is read at each use because other programs renew the token.

    *now* returns the time in seconds since the epoch.
    """

    def __init__(self, file: str, *, now: Callable[[], float] = time.time) -> None:
        self.file = file
        self._now = now

    def check(self, *, needed_seconds: float) -> None:
        lifetime = parse_lifetime(self.read())
        lifetime.check(f"token {self.file}", now=self._now(), needed_seconds=needed_seconds)

    def read(self) -> str:
        """Return the token.

        Raises:
            CredentialUnfit: the file cannot be read, is accessible to other users, or contains no token.
        """
        try:
            status, data = files.read(Path(self.file))
        except OSError as error:
            raise self._invalid(str(error.strerror)) from None
        text = data.decode("utf-8", "replace").strip()
        if status.st_uid != os.geteuid():
            raise self._invalid(f"belongs to user {status.st_uid}, not to user {os.geteuid()}")
        if status.st_mode & _OTHERS:
            raise self._invalid(f"accessible to others (mode {stat.S_IMODE(status.st_mode):o}, must be 600)")
        if not text:
            raise self._invalid("is empty")
        if len(text) > _LONGEST_BYTES or not _HEADER_VALUE.fullmatch(text):
            raise self._invalid("holds no token")
        return text

    def _invalid(self, reason: str) -> CredentialUnfit:
        return CredentialUnfit(f"no token: {self.file}: {reason}")


def parse_lifetime(token: str) -> Lifetime:
    """Return a token's period of validity; an opaque token is always valid."""
    claims = _claims(token)
    if claims is not None:
        begins, ends = _seconds(claims.get("nbf")), _seconds(claims.get("exp"))
        return Lifetime(
            begins=-math.inf if begins is None else begins, ends=math.inf if ends is None else ends
        )
    return Lifetime(ends=min(_ends(_decoded(token)), default=math.inf))


def _claims(token: str) -> dict[str, Any] | None:
    """Return the claims of a JSON web token; None for another kind of token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(_decoded(parts[1]))
    except (ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def _seconds(claim: object) -> float | None:
    """Return a NumericDate (RFC 7519) as seconds since the epoch; None for any other claim."""
    if isinstance(claim, bool) or not isinstance(claim, (int, float)):
        return None
    return float(claim) if abs(claim) < 1e15 else None


def _decoded(text: str) -> bytes:
    """Decode standard or URL-safe base64; return empty bytes for invalid *text*."""
    plain = text.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _ends(macaroon: bytes) -> Iterator[float]:
    """Yield the times, in seconds since the epoch, at which a caveat ``before:`` ends the *macaroon*."""
    for packet in _packets(macaroon):
        key, _, value = packet.partition(b" ")
        if key == b"cid" and value.startswith(_BEFORE):
            when = value[len(_BEFORE) :].decode("ascii", "replace").strip().replace("Z", "+00:00")
            try:
                moment = datetime.fromisoformat(when)
            except ValueError:
                continue
            if moment.tzinfo is not None:
                yield moment.timestamp()


def _packets(macaroon: bytes) -> Iterator[bytes]:
    """Yield the packets of a macaroon as ``KEY VALUE``, without their lengths (libmacaroons, version 1)."""
    while macaroon:
        try:
            size = int(macaroon[:_DIGITS], 16)
        except ValueError:
            return
        if not _DIGITS < size <= len(macaroon):
            return
        yield macaroon[_DIGITS:size].rstrip(b"\n")
        macaroon = macaroon[size:]
