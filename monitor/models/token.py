"""Tokens that authenticate programs at the API."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS, models
from django.db.models.base import ModelState
from django.utils import timezone

from monitor.core.db import binary
from monitor.models.role import UserRole, act_as, identity_of, is_administrator, keep_roles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.reporter import Reporter
    from monitor.models.site import Site

PREFIX = "gcast"
READ, RUN, REPORT, OUTCOME, MANAGE = "read", "run", "report", "outcome", "manage"
SCOPES = (READ, RUN, REPORT, OUTCOME, MANAGE)
REPORT_PERMISSION = "add_rawreport"
LIFETIME = timedelta(days=90)
Row = TypeVar("Row", bound=models.Model)
USED_SECONDS = 60  # the last use is written once in this time


_FROM = "FROM monitor_apitoken AS token JOIN auth_user AS holder ON holder.id = token.user_id"
_VALID = """monitor_is_admitted(holder.id, token.identity_id)
    AND token.revoked_at IS NULL AND token.expires_at >= now() IS NOT FALSE"""
# A token, those that were rotated or issued with it, and those of these.
_FAMILY = """
WITH RECURSIVE family AS (
    SELECT id FROM monitor_apitoken WHERE id = %s
    UNION SELECT derived.id FROM monitor_apitoken AS derived JOIN family ON derived.parent_id = family.id
)
SELECT id FROM family
"""
_IS_USE_DUE = f"(token.last_used_at > now() - interval '{USED_SECONDS} seconds') IS NOT TRUE"
_ROLES = ", ".join(f"'{role}'" for role in UserRole.values)
# A prepared statement, because it runs for every request.
_FOUND = f"""
SELECT token.id, token.name, token.scopes::text, token.site_id, {_IS_USE_DUE},
    holder.id, holder.username, holder.is_superuser, token.identity_id, (
        SELECT string_agg(theirs.name, ',') FROM monitor_groups(holder.id, token.identity_id) AS member
        JOIN auth_group AS theirs ON theirs.id = member.group_id WHERE theirs.name IN ({_ROLES}))
    {_FROM} WHERE token.sha256 = %(sha256)b AND {_VALID}
"""  # noqa: S608  # constants
# Written once a minute for each token: concurrent requests find nothing left to write.
_USED = f"""
UPDATE monitor_apitoken AS token SET last_used_at = now(), last_used_from = %(address)b
WHERE token.id = %(token)b AND {_IS_USE_DUE}
"""  # noqa: S608  # constants
# The rights of a sender in one statement, because it runs for every report. The permission is granted to the
# user or to one of the user's groups; a site admin may send what reporters at its sites report. The subquery
# hides the number of tokens from the planner, as ``monitor.core.db.array_parameters`` does.
_SENDER = f"""
SELECT token.sha256, token.scopes ? %(scope)b AND (rights.is_administrator OR EXISTS (
        SELECT FROM auth_permission AS permission
        JOIN django_content_type AS type ON type.id = permission.content_type_id
        WHERE type.app_label = 'monitor' AND permission.codename = %(permission)b AND (
            EXISTS (SELECT FROM auth_user_user_permissions AS own
                WHERE own.user_id = holder.id AND own.permission_id = permission.id)
            OR EXISTS (SELECT FROM auth_group_permissions AS theirs
                WHERE theirs.group_id = ANY (rights.groups) AND theirs.permission_id = permission.id))
    ) OR EXISTS (
        SELECT FROM monitor_own_sites(holder.id, token.identity_id) AS own
        WHERE own.site_id = reporter.site_id)),
    rights.is_administrator OR rights.is_operator OR NOT EXISTS (
        SELECT FROM monitor_suite_viewers AS viewers WHERE viewers.suite_id NOT IN (
            SELECT seen.suite_id FROM monitor_suite_viewers AS seen
            WHERE seen.group_id = ANY (rights.groups))),
    holder.id, holder.username, token.identity_id, token.id, token.prefix, {_IS_USE_DUE}, reporter.name
    {_FROM} LEFT JOIN monitor_reporter AS reporter ON reporter.id = token.reporter_id, LATERAL (
        SELECT array_agg(member.group_id) AS groups,
            coalesce(bool_or(role.name = %(operator)b), false) AS is_operator,
            holder.is_superuser OR coalesce(bool_or(role.name = %(administrator)b), false) AS is_administrator
        FROM monitor_groups(holder.id, token.identity_id) AS member
        JOIN auth_group AS role ON role.id = member.group_id
    ) AS rights
    WHERE token.sha256 = ANY ((SELECT %(sha256)b::text[])::text[]) AND {_VALID}
"""  # noqa: S608  # constants


@dataclass(frozen=True)
class Sender:
    """The rights of a token that sends reports.

    Attributes:
        may_report: whether the token may send reports, if it has a *reporter*.
        sees_all: whether *user* may see every series; if false, the visible series have to be looked up.
        user, username: the key and the name of the user of the token.
        identity: the identity by which the user acts with the token; None: by what was granted here.
        token, prefix: the key and the first characters of the token.
        is_use_due: whether the use of the token is to be written.
        reporter: the reporter whose reports the token may send; None: no reports.
    """

    may_report: bool
    sees_all: bool
    user: int
    username: str
    identity: int | None
    token: int
    prefix: str
    is_use_due: bool
    reporter: str | None

    def acting(self) -> User:
        """Return the user, with the rights that it has by the token."""
        user = User.objects.get(pk=self.user)
        act_as(user, self.identity)
        return user


class _IsAdmitted(models.Func):
    function, output_field = "monitor_is_admitted", models.BooleanField()

    def __init__(self) -> None:
        super().__init__("user_id", "identity_id")


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def find(self, text: str) -> ApiToken | None:
        """Return the valid token *text* with its user; None if there is no such token.

        Rarely used fields are deferred. The user has only the rights of the token's site, if it has one.
        """
        with binary.cursor() as cursor:
            row = cursor.execute(_FOUND, {"sha256": digest(text)}).fetchone()
        return _token(text, _TokenRow(*row)) if row else None

    def senders(self, texts: Sequence[str]) -> list[Sender | None]:
        """Return the sender for each of *texts*, in order; None for an invalid token."""
        digests = [digest(text) for text in texts]
        parameters = {
            "sha256": digests,
            "scope": REPORT,
            "permission": REPORT_PERMISSION,
            "operator": UserRole.OPERATOR.value,
            "administrator": UserRole.ADMINISTRATOR.value,
        }
        with binary.cursor() as cursor:
            senders = {sha256: Sender(*rights) for sha256, *rights in cursor.execute(_SENDER, parameters)}
        return [senders.get(sha256) for sha256 in digests]

    def note_use(self, token: int, address: str) -> None:
        """Write that *token* was used now, from *address*; at most once in ``USED_SECONDS``."""
        with binary.cursor() as cursor:
            cursor.execute(_USED, {"token": token, "address": address[:45]})

    def usable(self, now: datetime) -> ApiTokenQuerySet:
        """Return the tokens that are neither revoked nor expired."""
        is_unexpired = models.Q(expires_at=None) | models.Q(expires_at__gte=now)
        return self.filter(is_unexpired, revoked_at=None)

    def with_admission(self) -> ApiTokenQuerySet:
        """Return the tokens with *is_admitted*: whether the user of each is admitted by its identity now."""
        return self.select_related("user", "identity").annotate(is_admitted=_IsAdmitted())

    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> ApiTokenQuerySet:
        """Return the tokens of *user*; to an administrator, all."""
        return self if is_administrator(user) else self.filter(user=user.pk)

    def within(self, by: ApiToken) -> ApiTokenQuerySet:
        """Return the tokens with at most the rights of *by*: its user, identity, scopes, reporter and site.

        To the token of an administrator, these are tokens of all users. When they end does not count.
        """
        is_its_identity = models.Q(identity=None) | models.Q(identity=by.identity_id)
        rows = self if is_administrator(by.user) else self.filter(is_its_identity, user=by.user_id)
        rows = rows if by.site_id is None else rows.filter(site=by.site_id)
        is_its_reporter = models.Q(reporter=None) | models.Q(reporter=by.reporter_id)
        return rows.filter(is_its_reporter, scopes__contained_by=by.scopes)

    def family(self, token: ApiToken) -> ApiTokenQuerySet:
        """Return *token* with the tokens that came of it: rotated or issued with it, or with one of these."""
        return self.filter(pk__in=models.expressions.RawSQL(_FAMILY, [token.pk]))  # noqa: S611  # a constant

    def with_text(self, text: str) -> ApiToken:
        """Return the token *text* with all its fields."""
        return self.select_related("user", "reporter", "site").get(sha256=digest(text))

    def issue(
        self,
        user: AbstractBaseUser,
        name: str,
        scopes: list[str],
        reporter: Reporter | None = None,
        *,
        site: Site | None = None,
        expires_at: datetime | None = None,
        is_unlimited: bool = False,
        family_expires_at: datetime | None = None,
        parent: ApiToken | None = None,
    ) -> str:
        """Create a token for *user* with the rights *scopes*; return its text, which is not stored.

        It has the roles by which *user* acts here: those of its identity, if it acts by one. A token with the
        scope ``report`` sends reports of *reporter* only, and with a *site*, the token may
        change nothing elsewhere. It expires at *expires_at*, by default after ``LIFETIME``, and its family at
        *family_expires_at*, by default ``GRIDCAST_TOKEN_FAMILY_DAYS`` from now, or with the token if that is
        later. ``monitor.depot.access.tokens`` checks what may be issued to whom.
        """
        text, now = new_text(), timezone.now()
        limit = None if is_unlimited else expires_at or now + LIFETIME
        if limit is not None and family_expires_at is None:
            family_expires_at = max(limit, now + timedelta(days=settings.GRIDCAST_TOKEN_FAMILY_DAYS))
        fields = {"name": name, "scopes": scopes, "reporter": reporter, "site": site, "parent": parent}
        ends = {"expires_at": limit, "family_expires_at": family_expires_at}
        self.create(
            user_id=user.pk,
            identity_id=identity_of(user),
            sha256=digest(text),
            prefix=prefix_of(text),
            **fields,
            **ends,
        )
        return text

    def keep(
        self,
        user: AbstractBaseUser,
        name: str,
        scopes: list[str],
        text: str,
        reporter: Reporter | None = None,
    ) -> None:
        """Store *text* as a token of *user* that never expires."""
        fields = {
            "user_id": user.pk,
            "name": name,
            "scopes": scopes,
            "prefix": prefix_of(text),
            "reporter": reporter,
        }
        self.update_or_create(sha256=digest(text), defaults=fields)


class _TokenRow(NamedTuple):
    """A row of ``_FOUND``."""

    id: int
    name: str
    scopes: str
    site: int | None
    is_use_due: bool
    user: int
    username: str
    is_superuser: bool
    identity: int | None
    roles: str | None


def _token(text: str, row: _TokenRow) -> ApiToken:
    user = _loaded(User, id=row.user, is_superuser=row.is_superuser, username=row.username, is_active=True)
    scopes = json.loads(row.scopes)
    fields = {"id": row.id, "user_id": row.user, "identity_id": row.identity, "name": row.name}
    bounds = {"scopes": scopes, "site_id": row.site, "is_use_due": row.is_use_due}
    token = _loaded(ApiToken, **fields, **bounds, prefix=prefix_of(text))
    token.user = user
    act_as(user, row.identity)
    keep_roles(user, row.roles.split(",") if row.roles else ())
    user.bound_site = row.site  # type: ignore[attr-defined]  # read by monitor.models.site.bound_site
    return token


def _loaded(model: type[Row], **fields: object) -> Row:
    """Return a row of *model* as ``from_db`` does, the other fields deferred, in a fifth of the time.

    A token is looked up for every request; of these two models, no code listens to the signals of a new row.
    """
    row = model.__new__(model)
    row._state = ModelState()  # noqa: SLF001
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS  # noqa: SLF001
    row.__dict__.update(fields)
    return row


class ApiToken(models.Model):
    """A credential of a program. Only the hash is stored; the text is shown once, when the token is issued.

    The text has 256 random bits, so an unsalted SHA-256 is enough.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    identity = models.ForeignKey(
        "monitor.Identity",
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="tokens",
        help_text="the identity whose roles it has, beside those granted here; empty: those alone",
    )
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
    site = models.ForeignKey(
        "monitor.Site",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="tokens",
        help_text="the only site at which it may change anything; empty: those of its user",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    parent = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="derived",
        help_text="the token that it replaced, or with which it was issued or rotated",
    )
    family_expires_at = models.DateTimeField(
        null=True, editable=False, help_text="no token that comes of it is valid for longer; empty: for ever"
    )
    rotated_at = models.DateTimeField(null=True, editable=False, help_text="when another token replaced it")
    revoked_at = models.DateTimeField(null=True, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)
    last_used_from = models.CharField(max_length=45, blank=True, editable=False, help_text="an address")

    objects = ApiTokenQuerySet.as_manager()
    is_use_due = False  # set by ``find``

    class Meta:
        ordering = ["name", "-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}...)"

    def state(self, now: datetime) -> str:
        """Return ``revoked``, ``expired``, ``rotated`` (valid until it expires) or ``valid``."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at < now:
            return "expired"
        return "valid" if self.rotated_at is None else "rotated"

    def stopped_because(self, now: datetime, *, is_admitted: bool) -> str:
        """Return why requests with the token are refused although it has not ended; empty: they are not.

        *is_admitted*: as ``ApiTokenQuerySet.with_admission`` says.
        """
        if is_admitted:
            return ""
        if not self.user.is_active:
            return "the account is disabled"
        return self.identity.suspension(now) if self.identity else "no role is granted here"


def new_text() -> str:
    return f"{PREFIX}_{secrets.token_urlsafe(32)}"


def prefix_of(text: str) -> str:
    """Return the part of a token that is shown: too little to guess the rest."""
    return text[: len(PREFIX) + 5]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
