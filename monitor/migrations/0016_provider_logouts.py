"""Logouts that the provider reports take effect once; challenges of known browsers; overdue administrators are none."""

from django.db import migrations, models

from monitor.db.advisory_locks import AdvisoryLock

# As in 0009, but an identity whose roles had ceased to count by time was no administrator any more.
_FUNCTION = """
CREATE OR REPLACE FUNCTION monitor_administrators_remain() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was_administrator boolean;
BEGIN
    IF TG_TABLE_NAME = 'auth_user' THEN
        was_administrator := OLD.is_superuser OR EXISTS (
            SELECT FROM monitor_identities(OLD.id, 0) AS named WHERE 'administrator' = ANY (named.roles)
        );
    ELSE
        was_administrator := {of_identity};
    END IF;
    IF NOT was_administrator OR current_setting('gridcast.last_administrator_may_go', true) = 'on' THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock({lock});
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
"""
_OF_ACTIVE_USER = (
    "coalesce((SELECT account.is_active FROM auth_user AS account WHERE account.id = OLD.user_id), true)"
)


def _function(of_identity: str) -> str:
    return _FUNCTION.format(of_identity=of_identity, lock=AdvisoryLock.ADMINISTRATORS.value)


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0013_provider_sessions"),
    ]

    operations = [
        migrations.RunSQL(
            _function(f"OLD.valid_until > now() AND {_OF_ACTIVE_USER}"), _function(_OF_ACTIVE_USER)
        ),
        migrations.CreateModel(
            name="ProviderLogout",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.AddField(
            model_name="passkeychallenge", name="is_known", field=models.BooleanField(default=False)
        ),
    ]
