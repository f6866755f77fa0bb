"""Create the first account, whose owner can create all other accounts."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from monitor.access import roles
from monitor.access.roles import Grant
from monitor.models.role import UserRole

NAME = "admin"
_PASSWORD_BYTES = 12


def create_first_administrator(announce: Callable[[str, str], None]) -> bool:
    """Create an administrator with a random password, unless the depot has an active administrator.

    *announce* is called with the name and the password before the account is committed. If the call fails,
    the account is not created, so no account has an unknown password. gridcast stores only the password's
    hash.
    """
    if User.objects.filter(is_superuser=True, is_active=True).exists():
        return False
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    names = itertools.chain([NAME], (f"{NAME}-{number}" for number in itertools.count(2)))
    name = next(name for name in names if not User.objects.filter(username=name).exists())
    try:
        with transaction.atomic():
            user = User.objects.create_user(name, password=password)
            roles.grant(user, Grant(UserRole.ADMINISTRATOR))
            announce(name, password)
    except IntegrityError:  # another process has created it in the meantime
        return False
    return True
