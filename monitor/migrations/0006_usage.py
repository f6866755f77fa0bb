import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0005_groups"),
    ]

    operations = [
        migrations.CreateModel(
            name="Usage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("began_at", models.DateTimeField(help_text="as the run says: it counts for that day")),
                (
                    "bytes",
                    models.PositiveBigIntegerField(
                        help_text="sent and received, by copies that arrived", null=True
                    ),
                ),
                (
                    "cpu_seconds",
                    models.FloatField(help_text="of jobs: their processors times their run time", null=True),
                ),
            ],
            options={
                "verbose_name_plural": "usage",
                "ordering": ["-began_at"],
            },
        ),
        migrations.AddField(
            model_name="series",
            name="max_load1",
            field=models.FloatField(
                blank=True,
                help_text="a run is skipped while the load of one minute is above this at any of its resources",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="series",
            name="warm_up_runs",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="how often the probe is run before, its values thrown away; at most 5"
            ),
        ),
        migrations.AddField(
            model_name="site",
            name="bytes_per_day",
            field=models.PositiveBigIntegerField(
                blank=True,
                help_text="how many bytes it sends and receives in a day; empty: any number",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="site",
            name="cpu_hours_per_day",
            field=models.FloatField(
                blank=True,
                help_text="how much processor time jobs have in a day; empty: as much as they ask",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="site",
            name="runs_per_day",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="in how many runs it takes part in a day (UTC); empty: in any number",
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="series",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_load1__gt", 0)),
                name="series_max_load1_positive",
                violation_error_message="Expected a greatest load above 0, or none.",
            ),
        ),
        migrations.AddConstraint(
            model_name="series",
            constraint=models.CheckConstraint(
                condition=models.Q(("warm_up_runs__lte", 5)),
                name="series_warm_up_runs_few",
                violation_error_message="Expected at most 5 warm-up runs.",
            ),
        ),
        migrations.AddConstraint(
            model_name="site",
            constraint=models.CheckConstraint(
                condition=models.Q(("cpu_hours_per_day__gte", 0)),
                name="site_cpu_hours_not_negative",
                violation_error_message="Expected CPU-hours a day that are not negative, or none.",
            ),
        ),
        migrations.AddField(
            model_name="usage",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="usage",
                to="monitor.run",
            ),
        ),
        migrations.AddField(
            model_name="usage",
            name="site",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="usage",
                to="monitor.site",
            ),
        ),
        migrations.AddIndex(
            model_name="usage",
            index=models.Index(
                fields=["site", "began_at"], include=("bytes", "cpu_seconds"), name="usage_site_day"
            ),
        ),
        migrations.AddConstraint(
            model_name="usage",
            constraint=models.UniqueConstraint(fields=("run", "site"), name="usage_run_site_once"),
        ),
    ]
