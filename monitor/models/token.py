"""Tokens that authenticate programs at the API."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models

from monitor.db import binary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AbstractBaseUser

    from monitor.models.reporter import Reporter

PREFIX = "gcast"
READ, RUN, REPORT, OUTCOME, MANAGE = "read", "run", "report", "outcome", "manage"
SCOPES = (READ, RUN, REPORT, OUTCOME, MANAGE)
REPORT_PERMISSION = "add_rawreport"


_VALID = """
FROM monitor_apitoken AS token JOIN auth_user AS holder ON holder.id = token.user_id
WHERE token.sha256 = ANY (%(sha256)b) AND holder.is_active AND token.expires_at >= now() IS NOT FALSE
"""
# A prepared statement, because it runs for every request.
_FOUND = f"""
SELECT token.id, token.name, token.scopes::text, holder.id, holder.username, holder.is_superuser {_VALID}
"""
# The rights of a sender in one statement, because it runs for every report. The permission is granted to the
# user or to one of the user's groups.
_SENDER = f"""
SELECT token.sha256, token.scopes ? %(scope)b AND (holder.is_superuser OR EXISTS (
        SELECT FROM auth_permission AS permission
        JOIN django_content_type AS type ON type.id = permission.content_type_id
        WHERE type.app_label = 'monitor' AND permission.codename = %(permission)b AND (
            EXISTS (SELECT FROM auth_user_user_permissions AS own
                WHERE own.user_id = holder.id AND own.permission_id = permission.id)
            OR EXISTS (SELECT FROM auth_user_groups AS member
                JOIN auth_group_permissions AS theirs ON theirs.group_id = member.group_id
                WHERE member.user_id = holder.id AND theirs.permission_id = permission.id)))),
    holder.is_superuser OR NOT EXISTS (
        SELECT FROM monitor_suite_viewers AS viewers WHERE NOT EXISTS (
            SELECT FROM auth_user_groups AS member
            WHERE member.user_id = holder.id AND member.group_id = viewers.group_id)),
    holder.id,
    (SELECT name FROM monitor_reporter AS reporter WHERE reporter.id = token.reporter_id) {_VALID}
"""  # noqa: S608  # constants


@dataclass(frozen=True)
class Sender:
    """The rights of a token that sends reports.

    Attributes:
        may_report: whether the token may send reports, if it has a *reporter*.
        sees_all: whether *user* may see every series; if false, the visible series have to be looked up.
        user: the key of the user of the token.
        reporter: the reporter whose reports the token may send; None: no reports.
    """

    may_report: bool
    sees_all: bool
    user: int
    reporter: str | None


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def find(self, text: str) -> ApiToken | None:
        """Return the valid token *text* with its user; None if there is no such token.

        Rarely used fields are deferred.
        """
        with binary.cursor() as cursor:
            row = cursor.execute(_FOUND, {"sha256": [digest(text)]}).fetchone()
        return _token(_TokenRow(*row)) if row else None

    def senders(self, texts: Sequence[str]) -> list[Sender | None]:
        """Return the sender for each of *texts*, in order; None for an invalid token."""
        digests = [digest(text) for text in texts]
        parameters = {"sha256": digests, "scope": REPORT, "permission": REPORT_PERMISSION}
        with binary.cursor() as cursor:
            senders = {sha256: Sender(*rights) for sha256, *rights in cursor.execute(_SENDER, parameters)}
        return [senders.get(sha256) for sha256 in digests]

    def issue(
        self, user: AbstractBaseUser, name: str, scopes: list[str], reporter: Reporter | None = None
    ) -> str:
        """Create a token for *user* with the rights *scopes*; return its text, which is not stored.

        A token with the scope ``report`` sends reports of *reporter* only.
        """
        text = f"{PREFIX}_{secrets.token_urlsafe(32)}"
        self.keep(user, name, scopes, text, reporter)
        return text

    def keep(
        self,
        user: AbstractBaseUser,
        name: str,
        scopes: list[str],
        text: str,
        reporter: Reporter | None = None,
    ) -> None:
        """Store *text* as a token of *user*."""
        fields = {
            "user_id": user.pk,
            "name": name,
            "scopes": scopes,
            "prefix": text[: len(PREFIX) + 5],
            "reporter": reporter,
        }
        self.update_or_create(sha256=digest(text), defaults=fields)


class _TokenRow(NamedTuple):
    """A row of ``_FOUND``."""

    id: int
    name: str
    scopes: str
    user: int
    username: str
    is_superuser: bool


def _token(row: _TokenRow) -> ApiToken:
    values = [row.id, row.user, row.name, json.loads(row.scopes)]
    token = ApiToken.from_db(None, ["id", "user_id", "name", "scopes"], values)
    loaded = ["id", "is_superuser", "username", "is_active"]  # in the order of the model's fields
    token.user = User.from_db(None, loaded, [row.user, row.is_superuser, row.username, True])
    return token


class ApiToken(models.Model):
    """A credential of a program. Only the hash is stored; the text is shown once, when the token is issued.

    The text has 256 random bits, so an unsalted SHA-256 is enough.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=20, help_text="the first characters of the token")
    sha256 = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    reporter = models.ForeignKey(
        "monitor.Reporter",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="tokens",
        help_text="the reporter whose reports it may send; needed for the scope report",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}...)"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
