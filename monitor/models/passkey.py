"""What passkeys need beside the keys themselves: challenges, user handles, and which log in by themselves."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.db import connection, models

if TYPE_CHECKING:
    from datetime import datetime

    from allauth.mfa.models import Authenticator
    from django.contrib.auth.models import AbstractBaseUser

VALID = timedelta(minutes=10)
MOST_OF_BROWSER = 8  # open pages that show a button for a passkey
MOST_OF_USER = 32  # in all browsers in which the user has not logged in before
_HANDLE_BYTES = 64  # as WebAuthn recommends: the handle says nothing about its user

_IS_PASSWORDLESS = "passwordless"  # in the data of a passkey

_CONSUME = """
DELETE FROM monitor_passkeychallenge
WHERE challenge = %s AND ceremony = %s AND browser = %s AND user_id IS NOT DISTINCT FROM %s
    AND expires_at > %s
RETURNING challenge
"""


def store_passwordless(passkey: Authenticator, *, is_passwordless: bool) -> None:
    """Store whether *passkey* logs in without the password."""
    passkey.data[_IS_PASSWORDLESS] = is_passwordless
    passkey.save(update_fields=["data"])


def logs_in_without_password(passkey: Authenticator) -> bool:
    """Return whether *passkey* logs in without the password, as its user decided when it was added.

    django-allauth asks the browser's answer instead, of which the depot keeps only what was checked.
    """
    return passkey.data.get(_IS_PASSWORDLESS) is True


class Ceremony(models.TextChoices):
    REGISTRATION = "registration"
    LOGIN = "login"  # without the password: the passkey also says who its user is
    SECOND_FACTOR = "second factor"  # of a login with the password, or of a confirmation


class PasskeyChallengeQuerySet(models.QuerySet["PasskeyChallenge"]):
    def begin(
        self,
        challenge: str,
        ceremony: Ceremony,
        browser: str,
        user: AbstractBaseUser | None,
        now: datetime,
        *,
        is_known: bool = False,
    ) -> None:
        """Store *challenge*, and delete the oldest of the same browser and user beyond the bounds.

        *is_known*: the user has logged in with this browser before. Pages that other browsers open, with the
        right password, must not take its challenge away.
        """
        user_id = user.pk if user else None
        fields = {"ceremony": ceremony, "browser": browser, "user_id": user_id, "is_known": is_known}
        self.create(challenge=challenge, expires_at=now + VALID, **fields)
        of_browser = self.filter(browser=browser).order_by("-expires_at")[MOST_OF_BROWSER:]
        of_others = self.filter(user=user_id, user__isnull=False, is_known=False)
        for surplus in (of_browser, of_others.order_by("-expires_at")[MOST_OF_USER:]):
            self.filter(pk__in=list(surplus.values_list("pk", flat=True))).delete()

    def consume(
        self, challenge: str, ceremony: Ceremony, browser: str, user: AbstractBaseUser | None, now: datetime
    ) -> bool:
        """Delete *challenge*; return False if it has been consumed, has expired, or is of something else.

        Of two transactions at once, the second waits for the first, and then finds no row.
        """
        with connection.cursor() as cursor:
            cursor.execute(_CONSUME, [challenge, ceremony, browser, user.pk if user else None, now])
            return cursor.fetchone() is not None

    def expire(self, now: datetime) -> None:
        """Delete those that have expired, and those of a clock that was ahead: else others are surplus."""
        self.filter(models.Q(expires_at__lte=now) | models.Q(expires_at__gt=now + 2 * VALID)).delete()


class PasskeyChallenge(models.Model):
    """A challenge that a page has got and that no passkey has answered yet.

    Attributes:
        challenge: as the browser returns it, in URL-safe base64.
        browser: a secret of the session that asked for it.
        is_known: whether the user had logged in with that browser before.
        user: null where the passkey is to say who logs in.
    """

    challenge = models.CharField(max_length=64, primary_key=True)
    ceremony = models.CharField(max_length=20, choices=Ceremony.choices)
    browser = models.CharField(max_length=64, db_index=True)
    is_known = models.BooleanField(default=False)
    user = models.ForeignKey(User, models.CASCADE, null=True, related_name="+")
    expires_at = models.DateTimeField(db_index=True)

    objects = PasskeyChallengeQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.ceremony} until {self.expires_at:%H:%M:%S}"


def new_handle() -> bytes:
    return secrets.token_bytes(_HANDLE_BYTES)


class PasskeyHandleQuerySet(models.QuerySet["PasskeyHandle"]):
    def of_user(self, user: AbstractBaseUser) -> bytes:
        """Return the handle of *user*; the first call makes it."""
        return bytes(self.get_or_create(user_id=user.pk)[0].handle)


class PasskeyHandle(models.Model):
    """The random name by which the passkeys of *user* know their user."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="+")
    handle = models.BinaryField(max_length=_HANDLE_BYTES, unique=True, default=new_handle)

    objects = PasskeyHandleQuerySet.as_manager()

    def __str__(self) -> str:
        return f"of {self.user}"
