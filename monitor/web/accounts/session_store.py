"""Sessions in the depot that end at a fixed time after their login, however often they are changed."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.db import DatabaseError
from django.utils import timezone

ENDS_AT = "gridcast_ends_at"  # ISO 8601; missing before a login


class SessionStore(db.SessionStore):
    """Django's sessions begin their lifetime again with each change, for example with an added app."""

    def begin_lifetime(self) -> None:
        """Let the session end ``SESSION_COOKIE_AGE`` from now."""
        self[ENDS_AT] = (timezone.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE)).isoformat()

    def save(self, must_create: bool = False) -> None:  # as Django calls it
        """Save as Django does, which takes each error of the database for the end of the session.

        Raises:
            UpdateError: the session has ended meanwhile.
            DatabaseError: the database refused the statement, or cannot be reached.
        """
        try:
            super().save(must_create)
        except UpdateError as error:
            if type(error.__context__) is DatabaseError:  # of Django: no row was updated
                raise
            raise error.__context__ from None  # type: ignore[misc]  # Django raises it for no other error

    def get_expiry_date(self, **kwargs: Any) -> datetime:
        ends_at = self.get(ENDS_AT)
        return super().get_expiry_date(**kwargs) if ends_at is None else datetime.fromisoformat(ends_at)

    def get_expiry_age(self, **kwargs: Any) -> int:
        """Return the seconds until the end; the cookie lasts as long."""
        if self.get(ENDS_AT) is None:
            return super().get_expiry_age(**kwargs)
        return max(0, math.ceil((self.get_expiry_date() - timezone.now()).total_seconds()))
