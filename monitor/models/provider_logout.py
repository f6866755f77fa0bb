"""Logouts at the identity provider that it has reported: each ends sessions once."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from datetime import datetime


class ProviderLogoutQuerySet(models.QuerySet["ProviderLogout"]):
    def use(self, token_id: str, expires_at: datetime) -> bool:
        """Store that the token *token_id* is used, until *expires_at*; return False if it was used before.

        If the transaction fails, the token is as unused as before, and the provider may send it again.
        """
        digest = hashlib.sha256(token_id.encode()).hexdigest()
        return self.get_or_create(digest=digest, defaults={"expires_at": expires_at})[1]

    def expire(self, now: datetime) -> None:
        self.filter(expires_at__lte=now).delete()


class ProviderLogout(models.Model):
    """The SHA-256 of the ``jti`` of a logout token that was used. After *expires_at* it is too old anyway."""

    digest = models.CharField(max_length=64, primary_key=True)
    expires_at = models.DateTimeField(db_index=True)

    objects = ProviderLogoutQuerySet.as_manager()

    def __str__(self) -> str:
        return f"until {self.expires_at:%H:%M:%S}"
