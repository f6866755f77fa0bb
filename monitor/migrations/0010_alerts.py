import django.db.models.deletion
from django.db import migrations, models

# Who ends a run, in whatever way, has its series looked at; and who corrects what was missed or lost.
COUNTED = "('passed', 'failed', 'broken', 'timed_out', 'missed', 'lost')"
STIR = """
CREATE FUNCTION monitor_run_stirs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_recheck (series_id, due_at) VALUES (NEW.series_id, to_timestamp(0));
    RETURN NULL;
END $$;
CREATE TRIGGER run_stirs AFTER UPDATE OF state ON monitor_run FOR EACH ROW
    WHEN (NEW.state IN COUNTED OR OLD.state IN ('missed', 'lost')) EXECUTE FUNCTION monitor_run_stirs();
CREATE TRIGGER run_is_born_ended AFTER INSERT ON monitor_run FOR EACH ROW
    WHEN (NEW.state IN COUNTED) EXECUTE FUNCTION monitor_run_stirs();
""".replace("COUNTED", COUNTED)
REST = """
DROP TRIGGER run_is_born_ended ON monitor_run;
DROP TRIGGER run_stirs ON monitor_run;
DROP FUNCTION monitor_run_stirs;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0009_maintenance"),
    ]

    operations = [
        migrations.CreateModel(
            name="AlertRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(unique=True)),
                ("title", models.CharField(blank=True, max_length=200)),
                ("enabled", models.BooleanField(default=True)),
                (
                    "everything",
                    models.BooleanField(default=False, help_text="whether it watches every series"),
                ),
                (
                    "failures_in_row",
                    models.PositiveSmallIntegerField(
                        blank=True, help_text="open while so many runs in a row did not pass", null=True
                    ),
                ),
                (
                    "silent_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="open when a run was expected and nothing has been heard of the series for so long since",
                        null=True,
                    ),
                ),
                (
                    "notify",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text='who is told, e.g. [{"kind": "log"}]',
                    ),
                ),
                ("judged_as", models.CharField(blank=True, editable=False, max_length=64)),
                (
                    "series",
                    models.ManyToManyField(blank=True, related_name="alert_rules", to="monitor.series"),
                ),
                ("sites", models.ManyToManyField(blank=True, related_name="alert_rules", to="monitor.site")),
                (
                    "suites",
                    models.ManyToManyField(blank=True, related_name="alert_rules", to="monitor.suite"),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField()),
                ("opened_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
                ("text", models.TextField(help_text="why it was opened")),
                ("closed_text", models.TextField(blank=True, help_text="why it was closed")),
                (
                    "closed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="monitor.run",
                    ),
                ),
                (
                    "opened_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="monitor.run",
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="monitor.series",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="monitor.alertrule",
                    ),
                ),
            ],
            options={
                "ordering": ["-opened_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "event",
                    models.CharField(choices=[("opened", "Opened"), ("closed", "Closed")], max_length=6),
                ),
                ("channel", models.JSONField(help_text="as the rule said when it happened")),
                ("due_at", models.DateTimeField(null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("sent_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True, help_text="what the last attempt came to")),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to="monitor.alert",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="Recheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("due_at", models.DateTimeField()),
                (
                    "series",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="monitor.series",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("failures_in_row__isnull", True),
                        ("silent_seconds__gte", 60),
                        ("silent_seconds__isnull", False),
                    ),
                    models.Q(
                        ("failures_in_row__isnull", False),
                        ("failures_in_row__range", (1, 100)),
                        ("silent_seconds__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="alert_rule_has_one_condition",
                violation_error_message="Expected one of: failures in a row, 1 to 100; silent seconds, at least 60.",
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(fields=["-closed_at"], name="alert_latest"),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at", None)), fields=("rule", "series"), name="alert_open_once"
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="notification_due"
            ),
        ),
        migrations.AddIndex(
            model_name="recheck",
            index=models.Index(fields=["due_at"], name="recheck_due"),
        ),
        migrations.RunSQL(STIR, REST),
    ]
