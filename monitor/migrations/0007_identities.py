"""Identities of users at the provider, with their own roles; the SQL functions that say what a user may do."""

from __future__ import annotations

from typing import Any

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# ``identity`` is the key of one, null for what was granted here alone, and 0 for all identities of the user.
FUNCTIONS = """
CREATE FUNCTION monitor_identities(holder integer, identity bigint) RETURNS TABLE (roles varchar[])
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT named.roles FROM monitor_identity AS named
    WHERE named.user_id = holder AND (named.id = identity OR identity = 0)
        AND named.suspended = '' AND named.valid_until > now()
$$;
CREATE FUNCTION monitor_groups(holder integer, identity bigint) RETURNS TABLE (group_id integer)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT member.group_id FROM auth_user_groups AS member WHERE member.user_id = holder
    UNION ALL
    SELECT role.id FROM monitor_identities(holder, identity) AS named, unnest(named.roles) AS brought
    JOIN auth_group AS role ON role.name = split_part(brought, ':', 1)
$$;
CREATE FUNCTION monitor_own_sites(holder integer, identity bigint) RETURNS TABLE (site_id bigint)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT administrator.site_id FROM monitor_siteadministrator AS administrator
    WHERE administrator.user_id = holder AND EXISTS (
        SELECT FROM auth_user_groups AS member JOIN auth_group AS role ON role.id = member.group_id
        WHERE member.user_id = holder AND role.name = 'site_admin'
    )
    UNION ALL
    SELECT site.id FROM monitor_identities(holder, identity) AS named
    JOIN monitor_site AS site ON 'site_admin:' || site.name = ANY (named.roles)
$$;
CREATE FUNCTION monitor_is_admitted(holder integer, identity bigint) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT EXISTS (
        SELECT FROM auth_user AS account WHERE account.id = holder AND account.is_active AND (
            EXISTS (SELECT FROM monitor_identities(holder, identity))
            OR (identity IS NULL OR identity = 0) AND (
                account.is_superuser
                OR NOT EXISTS (SELECT FROM monitor_identity AS named WHERE named.user_id = holder)
                OR EXISTS (
                    SELECT FROM auth_user_groups AS member JOIN auth_group AS role ON role.id = member.group_id
                    WHERE member.user_id = holder
                        AND role.name IN ('viewer', 'scheduler', 'site_admin', 'operator', 'administrator')
                )
            )
        )
    )
$$;
"""
_DROPPED = """
DROP FUNCTION monitor_is_admitted; DROP FUNCTION monitor_own_sites; DROP FUNCTION monitor_groups;
DROP FUNCTION monitor_identities;
"""


def _identity_of_author() -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        blank=True,
        editable=False,
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="+",
        to="monitor.identity",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0006_equal_lengths"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Identity",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("issuer", models.CharField(blank=True, max_length=500)),
                ("subject", models.CharField(max_length=255)),
                ("is_verified", models.BooleanField(default=False)),
                (
                    "roles",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), blank=True, default=list, size=None
                    ),
                ),
                (
                    "kept_here",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), blank=True, default=list, size=None
                    ),
                ),
                ("verified_at", models.DateTimeField()),
                ("valid_until", models.DateTimeField()),
                ("suspended", models.CharField(blank=True, default="", max_length=300)),
                ("suspended_at", models.DateTimeField(null=True)),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="identity",
                        to="socialaccount.socialaccount",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="identities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "identities",
                "ordering": ["user__username", "issuer", "subject"],
                "constraints": [models.UniqueConstraint(fields=("issuer", "subject"), name="identity_once")],
            },
        ),
        migrations.CreateModel(
            name="DoorOpening",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("until", models.DateTimeField()),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="door_opening",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["user__username"]},
        ),
        *(
            migrations.AddField(model, "identity", _identity_of_author())
            for model in ("alertrule", "webhook")
        ),
        migrations.AddField(
            "apitoken",
            "identity",
            models.ForeignKey(
                editable=False,
                help_text="the identity whose roles it has, beside those granted here; empty: those alone",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="tokens",
                to="monitor.identity",
            ),
        ),
        migrations.RunSQL(FUNCTIONS, _DROPPED),
    ]
