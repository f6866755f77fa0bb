"""Create the first account, whose owner can create all other accounts."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable

from django.contrib.auth.models import User
from django.db import transaction

from monitor.depot.access.roles import Grant
from monitor.models.role import UserRole
from monitor.web.accounts import users

NAME = "admin"
_PASSWORD_BYTES = 12


@transaction.atomic
def create_first_administrator(announce: Callable[[str, str], None]) -> bool:
    """Create an administrator with a random password, unless the depot has an active administrator.

    *announce* is called with the name and the password before the account is committed. If the call fails,
    the account is not created, so no account has an unknown password. gridcast stores only the password's
    hash.
    """
    users.lock_names()
    if User.objects.filter(is_superuser=True, is_active=True).exists():  # another process has just created it
        return False
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    names = itertools.chain([NAME], (f"{NAME}-{number}" for number in itertools.count(2)))
    name = next(name for name in names if users.find_alike(name, reads_ascii=True) is None)
    users.create(name, password, [Grant(UserRole.ADMINISTRATOR)])
    announce(name, password)
    return True
