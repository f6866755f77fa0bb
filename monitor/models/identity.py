"""The identities by which users log in at the identity provider, with the roles that each of them brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models

if TYPE_CHECKING:
    from datetime import datetime

MOST_SUBJECT_CHARACTERS = 255  # OpenID Connect Core 1.0, section 2
MOST_REASON_CHARACTERS = 300
MOST_PROVIDER_SESSIONS = 50  # as many as a user may have sessions here


def names_of(issuer: str) -> list[str]:
    """Return *issuer* with and without a slash at its end: discovery may name it either way."""
    return [issuer.removesuffix("/"), f"{issuer.removesuffix('/')}/"]


class IdentityQuerySet(models.QuerySet["Identity"]):
    def in_force(self, now: datetime) -> IdentityQuerySet:
        """Return the identities whose roles count at *now*; ``monitor_identities`` repeats this in SQL."""
        return self.filter(suspended="", valid_until__gt=now)

    def suspended(self, now: datetime) -> IdentityQuerySet:
        """Return the identities whose roles do not count at *now*."""
        return self.exclude(pk__in=self.in_force(now).values("pk"))

    def in_force_at(self, time: datetime) -> IdentityQuerySet:
        """Return the identities whose roles counted at *time*, which may be past, as far as is still known.

        When an earlier suspension was, is forgotten once it is over.
        """
        was_admitted = models.Q(suspended="") | models.Q(suspended_at__gt=time)
        return self.filter(was_admitted, valid_until__gt=time)

    def lock_of(self, user: int | None) -> None:
        """Let no other transaction change identities of *user*, or save what acts by them, until this ends.

        Read the rows again afterwards: those that were read before may be outdated. Lock the user before rows
        of its sessions, tokens and holds, as all others do.
        """
        list(User.objects.select_for_update(no_key=True).filter(pk=user or 0).values_list("pk"))

    def keep(self, identity: int | None) -> bool:
        """Let *identity* not be deleted until the transaction ends; return False if it is gone already.

        Call it before what acts by *identity* later is saved: a deletion at the same time would not see the
        new row, and leave it to act by what is granted here. None is no identity, and never gone.
        """
        if identity is None:
            return True
        self.lock_of(self.filter(pk=identity).values_list("user", flat=True).first())
        return self.filter(pk=identity).exists()


class Identity(models.Model):
    """What an identity provider calls a user, and the roles that it gave the user at the last login.

    These roles are apart from those granted here: a session has them if it began with this identity.

    Attributes:
        account: the row by which django-allauth finds the user at a login.
        issuer: the provider, exactly as its tokens name it; before the first verified login, the one that was
            configured at the upgrade, which may differ by a slash at the end; empty: none was.
        is_verified: whether a verified token has named *issuer* and *subject*.
        roles: as at the last login, such as ``operator`` and ``site_admin:ncsa``; never empty while in force.
        kept_here: roles granted here of which the audit record did not say, at the upgrade, who granted them.
        verified_at: when the provider last named a mapped group of the user.
        valid_until: when it is suspended without a further login.
        warned_at: when its user was told that ``valid_until`` is near.
        suspended: why its roles do not count; empty: they do.
        provider_sessions: the sessions there (``sid``) of its latest logins, the last one at the end; a
            logout there may name one of them instead of the user.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="identities")
    account = models.OneToOneField("socialaccount.SocialAccount", models.CASCADE, related_name="identity")
    issuer = models.CharField(max_length=500, blank=True)
    subject = models.CharField(max_length=MOST_SUBJECT_CHARACTERS)
    is_verified = models.BooleanField(default=False)
    roles = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    kept_here = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    verified_at = models.DateTimeField()
    valid_until = models.DateTimeField()
    warned_at = models.DateTimeField(null=True)
    suspended = models.CharField(max_length=MOST_REASON_CHARACTERS, blank=True, default="")
    suspended_at = models.DateTimeField(null=True)
    provider_sessions = ArrayField(models.CharField(max_length=255), default=list, blank=True)

    objects = IdentityQuerySet.as_manager()

    class Meta:
        ordering = ["user__username", "issuer", "subject"]
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="identity_once"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}" if self.issuer else self.subject

    def suspension(self, now: datetime) -> str:
        """Return why its roles do not count at *now*; empty: they do."""
        if self.suspended or self.valid_until > now:
            return self.suspended
        return f"no login by the provider for {(self.valid_until - self.verified_at).days} days"

    def ceased_at(self, now: datetime) -> datetime | None:
        """Return since when its roles do not count; None: they do at *now*."""
        if not self.suspension(now):
            return None
        return min(time for time in (self.suspended_at, self.valid_until, now) if time is not None)
