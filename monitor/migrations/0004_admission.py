import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0003_ledger"),
    ]

    operations = [
        migrations.CreateModel(
            name="Blackout",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(max_length=200)),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["-starts_at"],
            },
        ),
        migrations.RemoveIndex(
            model_name="run",
            name="run_expected",
        ),
        migrations.AddField(
            model_name="run",
            name="due_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now,
                help_text="when it may begin: its slot, and what its series adds to it",
            ),
            preserve_default=False,
        ),
        migrations.RunSQL("UPDATE monitor_run SET due_at = slot", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="run",
            name="kept_until",
            field=models.DateTimeField(help_text="how long it may wait for what it needs alone", null=True),
        ),
        migrations.AddField(
            model_name="series",
            name="exclusive",
            field=models.CharField(
                blank=True,
                choices=[("site", "no site with another exclusive series"), ("link", "no pair of sites")],
                help_text="what it does not share while it runs",
                max_length=4,
            ),
        ),
        migrations.AddField(
            model_name="series",
            name="exclusive_wait_seconds",
            field=models.PositiveIntegerField(default=900, help_text="how long a slot may wait for that"),
        ),
        migrations.AddField(
            model_name="series",
            name="jitter_seconds",
            field=models.PositiveIntegerField(
                default=0, help_text="a run begins up to so long after its slot, each at a time of its own"
            ),
        ),
        migrations.AddField(
            model_name="site",
            name="runs_at_once",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="in how many runs it may take part at once; empty: in any number",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("state", "expected")), fields=["due_at"], name="run_expected"
            ),
        ),
        migrations.AddField(
            model_name="blackout",
            name="sites",
            field=models.ManyToManyField(blank=True, related_name="blackouts", to="monitor.site"),
        ),
        migrations.AddConstraint(
            model_name="blackout",
            constraint=models.CheckConstraint(
                condition=models.Q(("ends_at__gt", models.F("starts_at"))),
                name="blackout_ends_after_it_starts",
            ),
        ),
    ]
