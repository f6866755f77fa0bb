"""Local doors that an operator has opened by command for a while (``manage.py account open``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    from datetime import datetime


class DoorOpening(models.Model):
    """Until *until*, *user* may log in by password or passkey, whatever ``GRIDCAST_LOCAL_LOGIN`` says."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="door_opening")
    until = models.DateTimeField()

    class Meta:
        ordering = ["user__username"]

    def __str__(self) -> str:
        return f"{self.user} until {self.until:%Y-%m-%d %H:%M}"

    def is_open(self, now: datetime) -> bool:
        return now < self.until
