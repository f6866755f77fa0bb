from typing import Any

from django.db import migrations, models
from django.utils.text import slugify


def name(apps: Any, _schema_editor: Any) -> None:
    """Made from the title, for people, and from the key, which nobody else has."""
    for blackout in apps.get_model("monitor", "Blackout").objects.all():
        title = slugify(blackout.title)[:30].strip("-_")
        blackout.name = f"{title or 'maintenance'}-{blackout.pk}"
        blackout.save(update_fields=["name"])


def forget_what_recurs(apps: Any, schema_editor: Any) -> None:
    """A blackout was one window before."""
    apps.get_model("monitor", "Blackout").objects.exclude(schedule="").delete()
    schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # or its table cannot be altered


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0008_segments"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="blackout",
            options={"ordering": ["name"]},
        ),
        migrations.AddField(
            model_name="blackout",
            name="name",
            field=models.CharField(default="", max_length=50),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="blackout",
            name="schedule",
            field=models.CharField(
                blank=True,
                help_text="five-field cron, when each window begins; empty: there is one",
                max_length=200,
            ),
        ),
        migrations.AddField(
            model_name="blackout",
            name="timezone",
            field=models.CharField(
                default="UTC", help_text="whose clock the schedule means, by IANA name", max_length=50
            ),
        ),
        migrations.AddField(
            model_name="blackout",
            name="duration_seconds",
            field=models.PositiveIntegerField(
                blank=True, help_text="with a schedule, how long each window is", null=True
            ),
        ),
        migrations.AlterField(
            model_name="blackout",
            name="starts_at",
            field=models.DateTimeField(
                blank=True,
                help_text="of the one window; with a schedule, no window begins before it",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="blackout",
            name="ends_at",
            field=models.DateTimeField(
                blank=True,
                help_text="of the one window; with a schedule, no window begins after it",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="blackout",
            name="sites",
            field=models.ManyToManyField(
                blank=True, help_text="none: all of them", related_name="blackouts", to="monitor.site"
            ),
        ),
        migrations.AlterField(
            model_name="blackout",
            name="title",
            field=models.CharField(
                blank=True, help_text="what people call it; empty: its name", max_length=200
            ),
        ),
        migrations.RunPython(name, forget_what_recurs),
        migrations.AlterField(
            model_name="blackout",
            name="name",
            field=models.SlugField(unique=True),
        ),
        migrations.AlterConstraint(
            model_name="blackout",
            name="blackout_ends_after_it_starts",
            constraint=models.CheckConstraint(
                condition=models.Q(("ends_at__gt", models.F("starts_at"))),
                name="blackout_ends_after_it_starts",
                violation_error_message="Expected an end after the start.",
            ),
        ),
        migrations.AddConstraint(
            model_name="blackout",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("duration_seconds", None),
                        ("ends_at__isnull", False),
                        ("schedule", ""),
                        ("starts_at__isnull", False),
                    ),
                    models.Q(
                        models.Q(("schedule", ""), _negated=True),
                        ("duration_seconds__gt", 0),
                        ("duration_seconds__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="blackout_once_or_again",
                violation_error_message="Expected a start and an end, or a schedule and a duration.",
            ),
        ),
    ]
