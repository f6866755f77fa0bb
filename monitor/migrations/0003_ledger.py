import django.db.models.deletion
from django.db import migrations, models

# What may follow what, as of this migration (monitor.models.run.FOLLOWS).
REPORTED = ("passed", "failed", "broken", "no_data", "timed_out", "skipped")
FOLLOWS = {
    "expected": ("claimed", "missed", *REPORTED),
    "claimed": ("running", "expected", "lost", *REPORTED),
    "running": ("expected", "lost", *REPORTED),
    "missed": REPORTED,
    "lost": REPORTED,
}
PAIRS = ", ".join(f"('{source}', '{target}')" for source, targets in FOLLOWS.items() for target in targets)

KEEP_TRANSITIONS = """
CREATE FUNCTION monitor_run_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN (PAIRS) THEN
        RAISE EXCEPTION 'run % cannot go from % to %', OLD.id, OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO monitor_transition (run_id, source, target, at, cause)
        VALUES (NEW.id, OLD.state, NEW.state, clock_timestamp(), NEW.cause);
    RETURN NEW;
END $$;
CREATE TRIGGER run_moves BEFORE UPDATE OF state ON monitor_run FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION monitor_run_moves();
""".replace("PAIRS", PAIRS)
FORGET_TRANSITIONS = "DROP TRIGGER run_moves ON monitor_run; DROP FUNCTION monitor_run_moves;"

_SAYS = "schedule, timezone, starts_at, ends_at, enabled"
_OLD, _NEW = (", ".join(f"{row}.{column}" for column in _SAYS.split(", ")) for row in ("OLD", "NEW"))
NOTICE_RESCHEDULING = f"""
CREATE FUNCTION monitor_series_rescheduled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.scheduled_since := NULL;
    NEW.expanded_until := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER series_rescheduled BEFORE UPDATE ON monitor_series FOR EACH ROW
    WHEN (({_OLD}) IS DISTINCT FROM ({_NEW})) EXECUTE FUNCTION monitor_series_rescheduled();
"""
OVERLOOK_RESCHEDULING = (
    "DROP TRIGGER series_rescheduled ON monitor_series; DROP FUNCTION monitor_series_rescheduled;"
)


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0002_resource_address"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="cause",
            field=models.CharField(blank=True, help_text="what brought it into its state", max_length=200),
        ),
        migrations.AddField(
            model_name="series",
            name="ends_at",
            field=models.DateTimeField(blank=True, help_text="no slot is after it", null=True),
        ),
        migrations.AddField(
            model_name="series",
            name="expanded_until",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="series",
            name="scheduled_since",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="series",
            name="starts_at",
            field=models.DateTimeField(blank=True, help_text="no slot is before it", null=True),
        ),
        migrations.AddField(
            model_name="series",
            name="timezone",
            field=models.CharField(
                default="UTC", help_text="whose clock the schedule means, by IANA name", max_length=50
            ),
        ),
        migrations.AlterField(
            model_name="series",
            name="schedule",
            field=models.CharField(
                blank=True, help_text="five-field cron; H is a hashed slot", max_length=200
            ),
        ),
        migrations.CreateModel(
            name="Transition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("expected", "Expected"),
                            ("claimed", "Claimed"),
                            ("running", "Running"),
                            ("passed", "Passed"),
                            ("failed", "Failed"),
                            ("broken", "Broken"),
                            ("no_data", "No Data"),
                            ("timed_out", "Timed Out"),
                            ("skipped", "Skipped"),
                            ("missed", "Missed"),
                            ("lost", "Lost"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "target",
                    models.CharField(
                        choices=[
                            ("expected", "Expected"),
                            ("claimed", "Claimed"),
                            ("running", "Running"),
                            ("passed", "Passed"),
                            ("failed", "Failed"),
                            ("broken", "Broken"),
                            ("no_data", "No Data"),
                            ("timed_out", "Timed Out"),
                            ("skipped", "Skipped"),
                            ("missed", "Missed"),
                            ("lost", "Lost"),
                        ],
                        max_length=10,
                    ),
                ),
                ("at", models.DateTimeField(help_text="by the clock of the database")),
                ("cause", models.CharField(max_length=200)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="transitions",
                        to="monitor.run",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.RunSQL(KEEP_TRANSITIONS, FORGET_TRANSITIONS),
        migrations.RunSQL(NOTICE_RESCHEDULING, OVERLOOK_RESCHEDULING),
    ]
