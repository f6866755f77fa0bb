"""What follows from an added or removed second factor, in the transaction that changes it.

The audit record has it, and all other sessions of the user end: one of before could remove the factor again
with the password alone. allauth's signals come after the commit, too late for both.
"""

from __future__ import annotations

from typing import Any

from allauth.core import context
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.db.models.signals import post_delete, post_save

from monitor.depot.access.audit_trail import note
from monitor.web.accounts import sessions


def connect() -> None:
    post_save.connect(_saved, sender=Authenticator)
    post_delete.connect(_deleted, sender=Authenticator)


def _saved(instance: Authenticator, *, created: bool, raw: bool, **_: Any) -> None:
    if created and not raw:  # a use of a factor changes its row, too
        note("second factor", instance.user.get_username(), after=instance.type)
        _end_others(instance)


def _deleted(instance: Authenticator, origin: Any, **_: Any) -> None:
    if getattr(origin, "model", type(origin)) is User:  # whose sessions have ended
        return
    note("second factor", instance.user.get_username(), before=instance.type)
    _end_others(instance)


def _end_others(factor: Authenticator) -> None:
    """End all sessions of the user but the one that changes *factor*; a command ends all."""
    request = context.request
    is_own = request is not None and request.user.is_authenticated and request.user.pk == factor.user_id
    sessions.end_others(factor.user, request if is_own else None)
