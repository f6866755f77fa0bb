"""Whether a password is that of a user; a hash of an earlier version is replaced then, and no session ends.

Django's ``User.check_password`` replaces it, too, but each session stores a digest of the hash: all of them
would end, and a new password that is set at the same moment would be lost.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from allauth.core import context
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.hashers import make_password, verify_password
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction

if TYPE_CHECKING:
    from django.http import HttpRequest


def is_right(user: User, password: str) -> bool:
    """Return whether *password* is that of *user*, whose hash is then one of this version."""
    is_same, is_outdated = verify_password(password, user.password)
    if not is_same or not is_outdated or _replace_hash(user, password):
        return is_same
    stored = User.objects.filter(pk=user.pk).first()  # it has changed since *user* was read
    if stored is None:
        return False
    user.password = stored.password
    return is_right(user, password)


@transaction.atomic
def _replace_hash(user: User, password: str) -> bool:
    """Store a hash of this version for *user*, and let the sessions go on; return False if it has changed."""
    outdated, before = user.password, user.get_session_auth_hash()
    encoded = make_password(password)
    if not User.objects.filter(pk=user.pk, password=outdated).update(password=encoded):
        return False
    user.password = encoded
    after = user.get_session_auth_hash()
    keys = UserSession.objects.filter(user=user).values("session_key")
    store = import_module(settings.SESSION_ENGINE).SessionStore()
    for row in Session.objects.select_for_update().filter(session_key__in=keys):
        content = store.decode(row.session_data)
        if content.get(HASH_SESSION_KEY) == before:
            row.session_data = store.encode(content | {HASH_SESSION_KEY: after})
            row.save(update_fields=["session_data"])
    _continue_current(context.request, before, after)
    return True


def _continue_current(request: HttpRequest | None, before: str, after: str) -> None:
    """Let the session that *request* has read go on as well: it may be saved at the end of the request."""
    session = getattr(request, "session", {})
    if session.get(HASH_SESSION_KEY) == before:
        session[HASH_SESSION_KEY] = after
