import django.db.models.deletion
from django.db import migrations, models

_SAYS = (
    "schedule", "timezone", "starts_at", "ends_at", "enabled", "jitter_seconds", "leader_id", "follows",
    "delay_seconds",
)  # fmt: skip
_OLD, _NEW = (", ".join(f"{row}.{column}" for column in _SAYS) for row in ("OLD", "NEW"))
# Followers have their leader's slots: what changes those, changes theirs.
NOTICE_RESCHEDULING = f"""
CREATE FUNCTION monitor_leader_rescheduled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE monitor_series SET scheduled_since = NULL, expanded_until = NULL WHERE leader_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER leader_rescheduled AFTER UPDATE ON monitor_series FOR EACH ROW
    WHEN (({_OLD}) IS DISTINCT FROM ({_NEW})) EXECUTE FUNCTION monitor_leader_rescheduled();
DROP TRIGGER series_rescheduled ON monitor_series;
CREATE TRIGGER series_rescheduled BEFORE UPDATE ON monitor_series FOR EACH ROW
    WHEN (({_OLD}) IS DISTINCT FROM ({_NEW})) EXECUTE FUNCTION monitor_series_rescheduled();
"""  # noqa: S608 - the columns are those above
_SAID = _SAYS[:5]
_WAS, _IS = (", ".join(f"{row}.{column}" for column in _SAID) for row in ("OLD", "NEW"))
NOTICE_AS_BEFORE = f"""
DROP TRIGGER leader_rescheduled ON monitor_series;
DROP FUNCTION monitor_leader_rescheduled;
DROP TRIGGER series_rescheduled ON monitor_series;
CREATE TRIGGER series_rescheduled BEFORE UPDATE ON monitor_series FOR EACH ROW
    WHEN (({_WAS}) IS DISTINCT FROM ({_IS})) EXECUTE FUNCTION monitor_series_rescheduled();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0004_admission"),
    ]

    operations = [
        migrations.AddField(
            model_name="series",
            name="delay_seconds",
            field=models.PositiveIntegerField(default=0, help_text="how much later than that"),
        ),
        migrations.AddField(
            model_name="series",
            name="follows",
            field=models.CharField(
                blank=True,
                choices=[
                    ("with", "with it: its slots are the leader's"),
                    ("after", "after it: it begins when the leader's run of the slot has ended"),
                ],
                max_length=5,
            ),
        ),
        migrations.AddField(
            model_name="series",
            name="leader",
            field=models.ForeignKey(
                blank=True,
                help_text="the series whose schedule it follows, instead of one of its own",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="followers",
                to="monitor.series",
            ),
        ),
        migrations.AddField(
            model_name="series",
            name="retry_passes",
            field=models.PositiveSmallIntegerField(
                default=1, help_text="after so many passes in a row only its own schedule holds again"
            ),
        ),
        migrations.AddField(
            model_name="series",
            name="retry_schedule",
            field=models.CharField(
                blank=True, help_text="cron for more runs, after one that did not pass", max_length=200
            ),
        ),
        migrations.AddConstraint(
            model_name="series",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("follows", ""), ("leader", None)),
                    models.Q(
                        models.Q(("follows", ""), _negated=True), ("leader__isnull", False), ("schedule", "")
                    ),
                    _connector="OR",
                ),
                name="series_has_a_schedule_or_follows",
            ),
        ),
        migrations.RunSQL(NOTICE_RESCHEDULING, NOTICE_AS_BEFORE),
    ]
