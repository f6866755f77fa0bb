"""Local doors that an operator has opened by command for a while (``manage.py account open``)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    from datetime import datetime


MOST_OPEN = timedelta(days=7)
_LEEWAY = timedelta(minutes=1)  # between the clocks of two hosts


class DoorOpeningQuerySet(models.QuerySet["DoorOpening"]):
    def open_at(self, now: datetime) -> DoorOpeningQuerySet:
        """Return the openings that last at *now*.

        One that would last longer than any may was stored by a clock that was ahead, and is over.
        """
        return self.filter(until__gt=now, until__lte=now + MOST_OPEN + _LEEWAY)


class DoorOpening(models.Model):
    """Until *until*, *user* may log in by password or passkey, whatever ``GRIDCAST_LOCAL_LOGIN`` says."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="door_opening")
    until = models.DateTimeField()

    objects = DoorOpeningQuerySet.as_manager()

    class Meta:
        ordering = ["user__username"]

    def __str__(self) -> str:
        return f"{self.user} until {self.until:%Y-%m-%d %H:%M}"
