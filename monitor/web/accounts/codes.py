"""Codes of authenticator apps and recovery codes: read as they are typed, and accepted once.

The codes that were used are kept in the row of their factor, not in Valkey: the row is read and written
under one lock, so of equal codes that arrive at once exactly one is accepted, and an outage, a flush or a
restart of Valkey makes no used code valid again.
"""

from __future__ import annotations

import contextlib
import secrets
import unicodedata
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from allauth.mfa.utils import decrypt
from django.db import transaction

from monitor.models import Identity

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

# Spaces, hyphens, and characters without a width: people and apps group digits by them.
_BETWEEN_DIGITS = {"Zs", "Zl", "Zp", "Pd", "Cc", "Cf"}
_USED = "used_counters"
# By count, not by age: at most three codes are valid at a time, and the clock may be set back.
_MOST_REMEMBERED = 50


class WrongCode(Exception):
    """*factor* is the app, else the recovery codes, that the code was meant for; None if there are none."""

    def __init__(self, factor: Authenticator | None) -> None:
        super().__init__()
        self.factor = factor


class UsedCode(Exception):
    """The code of *factor* is right, but was accepted before."""

    def __init__(self, factor: Authenticator) -> None:
        super().__init__()
        self.factor = factor


@contextlib.contextmanager
def locked_factors(user: AbstractBaseUser) -> Iterator[None]:
    """Hold the factors of *user* in the block: no other request compares codes or changes factors."""
    with transaction.atomic():
        lock_factors(user)
        yield


def lock_factors(user: AbstractBaseUser) -> None:
    """Hold the factors of *user* until the transaction ends, as ``locked_factors``.

    The lock is that of its identities: who can come in changes in one order.
    """
    Identity.objects.lock_of(user.pk)


def normalised(text: str) -> str:
    """Return the digits of *text*, in ASCII; other characters than separators stay and match no code."""
    characters = (each for each in text if unicodedata.category(each) not in _BETWEEN_DIGITS)
    return "".join(str(unicodedata.decimal(each, each)) for each in characters)


def matching_counters(secret: str, text: str) -> list[int]:
    """Return the counters at which an app with *secret* shows the code *text* now, give or take a period."""
    code = normalised(text).encode()
    return [
        counter
        for counter in yield_hotp_counters_from_time()
        if secrets.compare_digest(format_hotp_value(hotp_value(secret, counter)).encode(), code)
    ]


def remember(app: Authenticator, counters: Collection[int]) -> None:
    """Refuse the codes of *app* at *counters* from now on; the caller holds the factors of its user."""
    app.data[_USED] = [*app.data.get(_USED, []), *counters][-_MOST_REMEMBERED:]
    app.save(update_fields=["data"])


def use(user: AbstractBaseUser, text: str) -> Authenticator:
    """Return the factor of *user* that accepts the code *text*, and refuse the code from now on.

    Raises:
        WrongCode: no factor accepts the code.
        UsedCode: it was accepted before.
    """
    with locked_factors(user):
        factors = {factor.type: factor for factor in Authenticator.objects.filter(user_id=user.pk)}
        app = factors.get(Authenticator.Type.TOTP)
        recovery_codes = factors.get(Authenticator.Type.RECOVERY_CODES)
        if app and (counters := matching_counters(decrypt(app.data["secret"]), text)):
            if not set(counters).isdisjoint(app.data.get(_USED, [])):
                raise UsedCode(app)
            remember(app, counters)
            return app
        if recovery_codes:
            code = normalised(text)
            if recovery_codes.wrap().validate_code(code):
                return recovery_codes
            if code in recovery_codes.wrap().generate_codes():
                raise UsedCode(recovery_codes)
        raise WrongCode(app or recovery_codes)
