"""What the identity provider publishes about itself, as it was last fetched."""

from __future__ import annotations

from django.db import models


class ProviderMetadata(models.Model):
    """The discovery document and the keys of an identity provider; served while it is unreachable.

    Attributes:
        issuer: as ``GRIDCAST_OIDC_URL`` has it.
        discovery, keys: JSON that has been parsed once; empty before the first success.
        keys_asked_at: when a login last had the keys fetched, because it named an unknown one.
        fault, is_unreachable: why the last fetch failed, at *failed_at*, and whether there was no answer.
    """

    issuer = models.TextField(primary_key=True)
    discovery = models.TextField(blank=True)
    keys = models.TextField(blank=True)
    fetched_at = models.DateTimeField(null=True)
    keys_asked_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    fault = models.TextField(blank=True)
    is_unreachable = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "provider metadata"

    def __str__(self) -> str:
        return self.issuer
