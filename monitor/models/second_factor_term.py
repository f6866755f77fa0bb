"""Since when a user has had to have a second factor."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import models


class SecondFactorTerm(models.Model):
    """The term of *user*, whose roles are among ``GRIDCAST_SECOND_FACTOR_ROLES``: it began at *began_at*.

    The row is made when the user gets such a role, or when the setting first names one of the user's, and
    deleted when neither holds any more. It stays if the user lost the role because an identity was
    disconnected, at *disconnected_at*: a user that connects it again does not begin the term again.
    ``monitor.web.accounts.factor_duty`` keeps them.
    """

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="+")
    began_at = models.DateTimeField()
    disconnected_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.user}: since {self.began_at:%Y-%m-%d}"
