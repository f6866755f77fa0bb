"""No commit takes the last active administrator, whatever page, command or statement made the change."""

from __future__ import annotations

from django.db import migrations

from monitor.core.db.advisory_locks import AdvisoryLock

# Deferred to the commit, where one lock lets two transactions count one after the other that each take one of
# two administrators. Only a row that was an administrator counts: a depot without one may be changed. The
# refusal of a provider is permitted to suspend the last one: it sets ``gridcast.last_administrator_may_go``.
CONSTRAINT = f"""
CREATE FUNCTION monitor_administrators_remain() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was_administrator boolean;
BEGIN
    IF TG_TABLE_NAME = 'auth_user' THEN
        was_administrator := OLD.is_superuser OR EXISTS (
            SELECT FROM monitor_identities(OLD.id, 0) AS named WHERE 'administrator' = ANY (named.roles)
        );
    ELSE
        was_administrator := coalesce(
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
CREATE CONSTRAINT TRIGGER administrators_remain AFTER UPDATE ON auth_user
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.is_active AND (NOT NEW.is_active OR (OLD.is_superuser AND NOT NEW.is_superuser)))
    EXECUTE FUNCTION monitor_administrators_remain();
CREATE CONSTRAINT TRIGGER administrators_remain_undeleted AFTER DELETE ON auth_user
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.is_active)
    EXECUTE FUNCTION monitor_administrators_remain();
CREATE CONSTRAINT TRIGGER administrators_remain AFTER UPDATE OR DELETE ON monitor_identity
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ('administrator' = ANY (OLD.roles) AND OLD.suspended = '')
    EXECUTE FUNCTION monitor_administrators_remain();
"""  # noqa: S608  # a constant
_DROPPED = """
DROP TRIGGER administrators_remain ON auth_user;
DROP TRIGGER administrators_remain_undeleted ON auth_user;
DROP TRIGGER administrators_remain ON monitor_identity;
DROP FUNCTION monitor_administrators_remain;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0008_adopt_identities"),
    ]

    operations = [
        migrations.RunSQL(CONSTRAINT, _DROPPED),
    ]
