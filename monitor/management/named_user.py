"""The user that an argument of a command names."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.management.base import CommandError


def named_user(name: str) -> User:
    """Return the user called *name*.

    Raises:
        CommandError: there is none; the message names one that differs in upper and lower case only.
    """
    user = User.objects.filter(username=name).first()
    if user is not None:
        return user
    alike = User.objects.filter(username__iexact=name).first()
    if alike is not None:
        raise CommandError(f"there is no user {name!r}, but {alike.get_username()!r}: names differ by case")
    raise CommandError(
        f"there is no user {name!r}: manage.py access list shows all users, manage.py account create {name}"
        " creates one"
    )
