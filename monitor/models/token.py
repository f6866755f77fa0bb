"""Tokens with which programs use the API."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models

from monitor.db import binary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AbstractBaseUser

PREFIX = "gcast"
READ, RUN, REPORT, OUTCOME = "read", "run", "report", "outcome"
SCOPES = (READ, RUN, REPORT, OUTCOME)
REPORT_PERMISSION = "add_rawreport"


_VALID = """
FROM monitor_apitoken AS token JOIN auth_user AS holder ON holder.id = token.user_id
WHERE token.sha256 = ANY (%(sha256)b) AND holder.is_active AND token.expires_at >= now() IS NOT FALSE
"""
# Asked before every answer, so that it is planned once.
_FOUND = f"""
SELECT token.id, token.name, token.scopes::text, holder.id, holder.username, holder.is_superuser {_VALID}
"""
# All that is asked about those who send reports, in one statement: a single report pays for each. The
# permission is somebody's own, or one of his groups'.
_SENDER = f"""
SELECT token.sha256, token.scopes ? %(scope)b AND (holder.is_superuser OR EXISTS (
        SELECT FROM auth_permission AS permission
        JOIN django_content_type AS type ON type.id = permission.content_type_id
        WHERE type.app_label = 'monitor' AND permission.codename = %(permission)b AND (
            EXISTS (SELECT FROM auth_user_user_permissions AS own
                WHERE own.user_id = holder.id AND own.permission_id = permission.id)
            OR EXISTS (SELECT FROM auth_user_groups AS his
                JOIN auth_group_permissions AS theirs ON theirs.group_id = his.group_id
                WHERE his.user_id = holder.id AND theirs.permission_id = permission.id)))),
    holder.is_superuser OR NOT EXISTS (
        SELECT FROM monitor_suite_viewers AS viewers WHERE NOT EXISTS (
            SELECT FROM auth_user_groups AS his
            WHERE his.user_id = holder.id AND his.group_id = viewers.group_id)),
    holder.id {_VALID}
"""  # noqa: S608  # our own words


@dataclass(frozen=True)
class Sender:
    """Who sends reports. Where he does not *see_all*, what he sees is to be asked of the series."""

    may_report: bool
    sees_all: bool
    user: int


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def find(self, text: str) -> ApiToken | None:
        """The valid token that *text* is, with its user, or None. Of both there is what is often asked; the
        rest is read when it is."""
        with binary.cursor() as cursor:
            row = cursor.execute(_FOUND, {"sha256": [digest(text)]}).fetchone()
        return _found(*row) if row else None

    def senders(self, texts: Sequence[str]) -> list[Sender | None]:
        """What each of *texts*, where it is a valid token, says of who sends reports; else None."""
        digests = [digest(text) for text in texts]
        asked = {"sha256": digests, "scope": REPORT, "permission": REPORT_PERMISSION}
        with binary.cursor() as cursor:
            found = {sha256: Sender(*said) for sha256, *said in cursor.execute(_SENDER, asked)}
        return [found.get(sha256) for sha256 in digests]

    def issue(self, user: AbstractBaseUser, name: str, scopes: list[str]) -> str:
        """Make a token for *user*; return its text, which nobody can find out later."""
        text = f"{PREFIX}_{secrets.token_urlsafe(32)}"
        self.keep(user, name, scopes, text)
        return text

    def keep(self, user: AbstractBaseUser, name: str, scopes: list[str], text: str) -> None:
        """Accept *text* as a token of *user* from now on."""
        given = {"user_id": user.pk, "name": name, "scopes": scopes, "prefix": text[: len(PREFIX) + 5]}
        self.update_or_create(sha256=digest(text), defaults=given)


def _found(pk: int, name: str, scopes: str, user: int, username: str, is_superuser: bool) -> ApiToken:
    token = ApiToken.from_db(None, ["id", "user_id", "name", "scopes"], [pk, user, name, json.loads(scopes)])
    known = ["id", "is_superuser", "username", "is_active"]  # in the order of the model's fields
    token.user = User.from_db(None, known, [user, is_superuser, username, True])
    return token


class ApiToken(models.Model):
    """What a program shows instead of a password. Only its hash is kept: the text is seen once, when issued.

    The text has 256 random bits, so that a plain SHA-256 is enough.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=20, help_text="the start of the text, to tell tokens apart")
    sha256 = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}...)"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
