import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("monitor", "0013_runs_by_time"),
    ]

    operations = [
        migrations.CreateModel(
            name="Correction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("time", models.DateTimeField(help_text="of the sample: its run's slot")),
                ("old_value", models.FloatField(null=True)),
                ("old_passed", models.BooleanField(null=True)),
                ("new_value", models.FloatField(null=True)),
                ("new_passed", models.BooleanField(null=True)),
                ("parser_version", models.PositiveSmallIntegerField(help_text="that made the new value")),
                ("corrected_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["corrected_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Horizon",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("reports", "raw reports"),
                            ("samples", "samples"),
                            ("hourly", "rollups of hours"),
                            ("daily", "rollups of days"),
                        ],
                        max_length=7,
                    ),
                ),
                ("kept_from", models.DateTimeField()),
                ("gone_before", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["series_id", "kind"],
            },
        ),
        migrations.AddField(
            model_name="rawreport",
            name="parsed_by",
            field=models.PositiveSmallIntegerField(
                db_default=1, help_text="which version of the parser its run's samples are from"
            ),
        ),
        migrations.AddField(
            model_name="suite",
            name="keep_daily_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="for so many days rollups of days are kept; without a number, for ever",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(36500),
                ],
            ),
        ),
        migrations.AddField(
            model_name="suite",
            name="keep_hourly_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="for so many days rollups of hours are kept; without a number, for ever",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(36500),
                ],
            ),
        ),
        migrations.AddField(
            model_name="suite",
            name="keep_reports_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="for so many days raw reports are kept; without a number, for ever",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(36500),
                ],
            ),
        ),
        migrations.AddField(
            model_name="suite",
            name="keep_samples_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="for so many days samples are kept; without a number, for ever",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(36500),
                ],
            ),
        ),
        migrations.AddConstraint(
            model_name="suite",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("keep_hourly_days__isnull", True),
                    models.Q(
                        ("keep_samples_days__isnull", False),
                        ("keep_samples_days__lte", models.F("keep_hourly_days")),
                    ),
                    _connector="OR",
                ),
                name="suite_samples_go_first",
                violation_error_message="Expected rollups of hours to be kept at least as long as samples.",
            ),
        ),
        migrations.AddConstraint(
            model_name="suite",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("keep_daily_days__isnull", True),
                    models.Q(
                        ("keep_hourly_days__isnull", False),
                        ("keep_hourly_days__lte", models.F("keep_daily_days")),
                    ),
                    _connector="OR",
                ),
                name="suite_hours_go_first",
                violation_error_message="Expected rollups of days to be kept at least as long as of hours.",
            ),
        ),
        migrations.AddField(
            model_name="correction",
            name="metric",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="corrections", to="monitor.metric"
            ),
        ),
        migrations.AddField(
            model_name="horizon",
            name="series",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="horizons", to="monitor.series"
            ),
        ),
        migrations.AddIndex(
            model_name="correction",
            index=models.Index(fields=["metric", "time"], name="correction_metric_time"),
        ),
        migrations.AddConstraint(
            model_name="horizon",
            constraint=models.UniqueConstraint(fields=("series", "kind"), name="horizon_kind_once"),
        ),
    ]
