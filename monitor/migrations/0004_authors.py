"""Authors of what acts later, and rechecks of series that move to another suite, reporter or site."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_AUTHOR = {
    "author": lambda: models.ForeignKey(
        blank=True,
        editable=False,
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
    ),
    "author_name": lambda: models.CharField(
        blank=True, db_default="", default="", editable=False, max_length=150
    ),
    "suspended": lambda: models.CharField(
        blank=True, db_default="", default="", editable=False, max_length=300
    ),
}

# A rule may watch a series, or not any more, because the series has moved: have it evaluated at the next tick.
_RECHECKS = """
CREATE FUNCTION monitor_recheck_series() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_recheck (series_id, due_at) VALUES (NEW.id, to_timestamp(0));
    RETURN NULL;
END $$;
CREATE TRIGGER recheck_moved AFTER UPDATE OF suite_id, reporter_id, probe ON monitor_series FOR EACH ROW
    WHEN ((OLD.suite_id, OLD.reporter_id, OLD.probe) IS DISTINCT FROM (NEW.suite_id, NEW.reporter_id, NEW.probe))
    EXECUTE FUNCTION monitor_recheck_series();
CREATE FUNCTION monitor_recheck_bound() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_recheck (series_id, due_at) SELECT DISTINCT series_id, to_timestamp(0) FROM moved;
    RETURN NULL;
END $$;
CREATE TRIGGER recheck_bound AFTER INSERT ON monitor_binding REFERENCING NEW TABLE AS moved
    FOR EACH STATEMENT EXECUTE FUNCTION monitor_recheck_bound();
CREATE TRIGGER recheck_rebound AFTER UPDATE ON monitor_binding REFERENCING NEW TABLE AS moved
    FOR EACH STATEMENT EXECUTE FUNCTION monitor_recheck_bound();
CREATE TRIGGER recheck_unbound AFTER DELETE ON monitor_binding REFERENCING OLD TABLE AS moved
    FOR EACH STATEMENT EXECUTE FUNCTION monitor_recheck_bound();
CREATE FUNCTION monitor_recheck_resource() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_recheck (series_id, due_at)
        SELECT DISTINCT series_id, to_timestamp(0) FROM monitor_binding WHERE resource_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER recheck_resource AFTER UPDATE OF site_id ON monitor_resource FOR EACH ROW
    WHEN (OLD.site_id IS DISTINCT FROM NEW.site_id) EXECUTE FUNCTION monitor_recheck_resource();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0003_token_families"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        *(
            migrations.AddField(model, name, field())
            for model in ("alertrule", "webhook")
            for name, field in _AUTHOR.items()
        ),
        migrations.AlterField(
            "auditevent",
            "channel",
            models.CharField(
                choices=[
                    ("page", "Page"),
                    ("api", "Api"),
                    ("admin", "Admin"),
                    ("command", "Command"),
                    ("service", "Service"),
                ],
                max_length=7,
            ),
        ),
        migrations.AlterField(
            "enrolmentcode",
            "created_by",
            models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.RunSQL(_RECHECKS),
    ]
