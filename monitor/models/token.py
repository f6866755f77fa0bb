"""Tokens with which programs use the API."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

PREFIX = "gcast"
READ, RUN, REPORT = "read", "run", "report"
SCOPES = (READ, RUN, REPORT)


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def find(self, text: str) -> ApiToken | None:
        """The valid token that *text* is, or None."""
        return (
            self.filter(sha256=digest(text), user__is_active=True)
            .exclude(expires_at__lt=timezone.now())
            .select_related("user")
            .first()
        )

    def issue(self, user: AbstractBaseUser, name: str, scopes: list[str]) -> str:
        """Make a token for *user*; return its text, which nobody can find out later."""
        text = f"{PREFIX}_{secrets.token_urlsafe(32)}"
        self.keep(user, name, scopes, text)
        return text

    def keep(self, user: AbstractBaseUser, name: str, scopes: list[str], text: str) -> None:
        """Accept *text* as a token of *user* from now on."""
        given = {"user_id": user.pk, "name": name, "scopes": scopes, "prefix": text[: len(PREFIX) + 5]}
        self.update_or_create(sha256=digest(text), defaults=given)


class ApiToken(models.Model):
    """What a program shows instead of a password. Only its hash is kept: the text is seen once, when issued.

    The text has 256 random bits, so that a plain SHA-256 is enough.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=20, help_text="the start of the text, to tell tokens apart")
    sha256 = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}...)"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
