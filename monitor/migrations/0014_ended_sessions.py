"""Count how often all sessions of a user were ended; an identity that is overdue is no administrator."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from monitor.core.db.advisory_locks import AdvisoryLock

# As in 0009_administrators_remain, but the row of an identity whose roles had ceased to count was no
# administrator: in a depot without another one, nothing could change it, such as ``account bind-issuer``.
FUNCTION = f"""
CREATE OR REPLACE FUNCTION monitor_administrators_remain() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was_administrator boolean;
BEGIN
    IF TG_TABLE_NAME = 'auth_user' THEN
        was_administrator := OLD.is_superuser OR EXISTS (
            SELECT FROM monitor_identities(OLD.id, 0) AS named WHERE 'administrator' = ANY (named.roles)
        );
    ELSE
        was_administrator := OLD.valid_until > now() AND coalesce(
            (SELECT account.is_active FROM auth_user AS account WHERE account.id = OLD.user_id), true
        );
    END IF;
    IF NOT was_administrator OR current_setting('gridcast.last_administrator_may_go', true) = 'on' THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock({AdvisoryLock.ADMINISTRATORS.value});
    IF NOT EXISTS (
        SELECT FROM auth_user AS account WHERE account.is_active AND (
            account.is_superuser OR EXISTS (
                SELECT FROM monitor_identities(account.id, 0) AS named
                WHERE 'administrator' = ANY (named.roles)
            )
        )
    ) THEN
        RAISE EXCEPTION 'no active administrator would remain: grant the role to another user first'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'administrators_remain';
    END IF;
    RETURN NULL;
END $$;
"""  # noqa: S608  # a constant


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0013_provider_sessions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="EndedSessions",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("times", models.PositiveIntegerField()),
            ],
        ),
        migrations.RunSQL(FUNCTION, migrations.RunSQL.noop),
    ]
