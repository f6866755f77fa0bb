"""Accounts of the provider become identities, which take the roles that logins by the provider granted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db import migrations, models
from django.utils import timezone

# What granted or revoked each role last, by the name that the audit record has for it: ``ada: operator``.
_LAST_CHANGES = """
SELECT DISTINCT ON (change ->> 'name') change ->> 'name', event.action, change ->> 'after'
FROM monitor_auditevent AS event, jsonb_array_elements(event.changes) AS change
WHERE event.changes @> '[{"kind": "role"}]'
    AND change ->> 'kind' = 'role' AND change ->> 'after' IN ('granted', 'revoked')
ORDER BY change ->> 'name', event.last_at DESC, event.id DESC
"""
_PROVIDER_LOGIN = "GET /login/sso/callback/"
_REFUSED = "the provider named no mapped group at the last login"
_ROLES = ("viewer", "scheduler", "site_admin", "operator", "administrator")
_NAME_CHARACTERS = 200  # that the audit record keeps of a name
_LastChanges = dict[str, tuple[str, str]]


def adopt_identities(apps: Any, schema_editor: Any) -> None:
    """Make an identity of each account of the provider that a user has connected, and give it its roles.

    The roles of a user with one identity become those of the identity if a login granted them. What was
    granted here stays, and what the audit record does not say stays, too, and is listed in ``kept_here``.
    """
    identities, users = apps.get_model("monitor", "Identity"), apps.get_model("auth", "User")
    configured, now = settings.GRIDCAST_IDENTITY_PROVIDER, timezone.now()
    for account in apps.get_model("socialaccount", "SocialAccount").objects.order_by("pk"):
        identities.objects.create(
            user_id=account.user_id,
            account_id=account.pk,
            issuer=configured.url if configured else "",
            subject=account.uid,
            verified_at=now,
            valid_until=now + timedelta(days=settings.GRIDCAST_OIDC_VALID_DAYS),
        )
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_LAST_CHANGES)
        changes = {name: (action, after) for name, action, after in cursor.fetchall()}
    with_identity = users.objects.annotate(number=models.Count("identities"))
    brought = {user: _brought(apps, user, changes) for user in with_identity.filter(number=1).order_by("pk")}
    _keep_a_door(apps, brought)
    for user, roles in brought.items():
        _move(apps, user, roles)
    for user in with_identity.filter(number__gt=0).order_by("pk"):
        if not _grants(apps, user) and not user.identities.exclude(roles=[]).exists():
            _settle_without_role(apps, user, changes, now)


def _grants(apps: Any, user: Any) -> list[str]:
    """Return what is granted to *user* here."""
    roles = set(user.groups.filter(name__in=_ROLES).values_list("name", flat=True)) - {"administrator"}
    at_sites = apps.get_model("monitor", "SiteAdministrator").objects.filter(user_id=user.pk)
    sites = at_sites.values_list("site__name", flat=True) if "site_admin" in roles else []
    plain = sorted(roles - {"site_admin"} | ({"administrator"} if user.is_superuser else set()))
    return [*plain, *(f"site_admin:{site}" for site in sites)]


def _brought(apps: Any, user: Any, changes: _LastChanges) -> list[str]:
    """Return the roles of *user* that a login by the provider granted; note those of unknown origin."""
    origin = {
        grant: changes.get(f"{user.username}: {grant}"[:_NAME_CHARACTERS]) for grant in _grants(apps, user)
    }
    user.identities.update(kept_here=[grant for grant, change in origin.items() if change is None])
    return [grant for grant, change in origin.items() if change and change[0] == _PROVIDER_LOGIN]


def _keep_a_door(apps: Any, brought: dict[Any, list[str]]) -> None:
    """Keep the role ``administrator`` granted here where else none could log in without the provider."""
    passkeys = apps.get_model("mfa", "Authenticator").objects.filter(type="webauthn").values("user_id")
    without_password = models.Q(password="") | models.Q(("password__startswith", UNUSABLE_PASSWORD_PREFIX))
    administrators = apps.get_model("auth", "User").objects.filter(is_superuser=True, is_active=True)
    with_door = administrators.filter(~without_password | models.Q(pk__in=passkeys))
    losing = {user.pk for user, roles in brought.items() if "administrator" in roles}
    if with_door.exclude(pk__in=losing).exists():
        return
    for user in [user for user in brought if user.pk in losing and with_door.filter(pk=user.pk).exists()]:
        brought[user].remove("administrator")
        identity = user.identities.get()
        identity.kept_here = [*identity.kept_here, "administrator"]
        identity.save(update_fields=["kept_here"])


def _move(apps: Any, user: Any, roles: list[str]) -> None:
    """Take *roles* from what was granted to *user* here, and give them, and what acts for it, to the identity."""
    if not roles:
        return
    identity = user.identities.get()
    identity.roles = roles
    identity.save(update_fields=["roles"])
    sites = {grant.partition(":")[2] for grant in roles if ":" in grant}
    administered = apps.get_model("monitor", "SiteAdministrator").objects.filter(user_id=user.pk)
    administered.filter(site__name__in=sites).delete()
    taken = {grant for grant in roles if ":" not in grant}
    if sites and not administered.exists():
        taken.add("site_admin")
    user.groups.remove(*user.groups.filter(name__in=taken))
    left = set(user.groups.values_list("name", flat=True))
    user.is_superuser = user.is_superuser and "administrator" not in taken
    user.is_staff = user.is_superuser or bool(left & {"site_admin", "operator", "administrator"})
    user.save(update_fields=["is_superuser", "is_staff"])
    apps.get_model("monitor", "ApiToken").objects.filter(user_id=user.pk).update(identity_id=identity.pk)
    for model in ("AlertRule", "Webhook"):
        apps.get_model("monitor", model).objects.filter(author_id=user.pk).update(identity_id=identity.pk)


def _settle_without_role(apps: Any, user: Any, changes: _LastChanges, now: datetime) -> None:
    """Suspend the identities of *user*, which read as a viewer; a local account keeps that role.

    An account that the provider refused stays refused. A local account that had connected an identity, and
    had no role, was never refused.
    """
    last = [change for name, change in changes.items() if name.startswith(f"{user.username}: ")]
    was_refused = (_PROVIDER_LOGIN, "revoked") in last
    if user.password.startswith(UNUSABLE_PASSWORD_PREFIX) or was_refused:
        user.identities.update(suspended=_REFUSED, suspended_at=now)
        return
    viewer, _ = apps.get_model("auth", "Group").objects.get_or_create(name="viewer")
    user.groups.add(viewer)
    user.identities.update(kept_here=["viewer"])


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0007_identities"),
        ("mfa", "0003_authenticator_type_uniq"),
    ]

    operations = [
        migrations.RunPython(adopt_identities, migrations.RunPython.noop),
    ]
