import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# One forecast has the quantiles of every level now. Its median was its mean.
ONE_LEVEL = """
DELETE FROM monitor_forecast WHERE level <> 0.8;
UPDATE monitor_forecast SET median = mean;
"""
ONE_OF_EACH_KNOWLEDGE = """
DELETE FROM monitor_forecast AS forecast USING monitor_forecast AS later
WHERE later.metric_id = forecast.metric_id AND later.method = forecast.method AND later.id > forecast.id
    AND later.last_known_at = forecast.last_known_at
"""
# Rows are written again and again, in place where there is room beside them; what states are is no text.
ROOM = """
ALTER TABLE monitor_forecaststate SET (fillfactor = 70);
ALTER TABLE monitor_successstate SET (fillfactor = 70);
"""
# Whatever was measured so far is read by and by.
NEWS = """
INSERT INTO monitor_forecastnews (series_id, hour)
SELECT DISTINCT series_id, timestamptz 'epoch' FROM monitor_segment
"""


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0019_current"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ForecastNews",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("due_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "forecast news",
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="ForecastPredictor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("n", models.PositiveIntegerField(default=0)),
                ("gain", models.FloatField(null=True)),
                ("p_value", models.FloatField(null=True)),
                ("is_kept", models.BooleanField(null=True)),
            ],
            options={
                "ordering": ["metric", "id"],
            },
        ),
        migrations.CreateModel(
            name="ForecastState",
            fields=[
                (
                    "metric",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="forecast_state",
                        serialize=False,
                        to="monitor.metric",
                    ),
                ),
                ("state", models.BinaryField(null=True)),
                ("versions", models.BinaryField(help_text="of the methods that made it", null=True)),
                ("used_until", models.DateTimeField(null=True)),
                ("used", models.BinaryField(null=True)),
                ("is_behind", models.BooleanField(default=True)),
                ("n", models.PositiveIntegerField(default=0, help_text="values of its own that were used")),
                ("last_time", models.DateTimeField(help_text="slot of the newest of these", null=True)),
                ("last_value", models.FloatField(null=True)),
                ("issued_at", models.DateTimeField(null=True)),
                ("method", models.CharField(blank=True, max_length=50)),
                ("predictor", models.CharField(blank=True, max_length=300)),
                ("mean", models.FloatField(null=True)),
                ("median", models.FloatField(null=True)),
                ("lower", models.FloatField(null=True)),
                ("upper", models.FloatField(null=True)),
                (
                    "quantiles",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), null=True, size=None
                    ),
                ),
                ("stale_at", models.DateTimeField(null=True)),
                ("explanation", models.JSONField(null=True)),
                ("record_n", models.PositiveSmallIntegerField(default=0)),
                ("mean_absolute_error", models.FloatField(null=True)),
                ("relative_error", models.FloatField(null=True)),
                (
                    "mean_absolute_scaled_error",
                    models.FloatField(help_text="against the last value", null=True),
                ),
                (
                    "winkler_score",
                    models.FloatField(help_text="of the interval from lower to upper", null=True),
                ),
                (
                    "less",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(), default=list, size=None
                    ),
                ),
                (
                    "most",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(), default=list, size=None
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Outcome",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("job", models.CharField(max_length=200)),
                ("passed", models.BooleanField()),
                ("seconds", models.FloatField(help_text="how long it took, or until it failed", null=True)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["-received_at"],
            },
        ),
        migrations.CreateModel(
            name="SuccessState",
            fields=[
                (
                    "series",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="success_state",
                        serialize=False,
                        to="monitor.series",
                    ),
                ),
                ("state", models.BinaryField(null=True)),
                ("versions", models.BinaryField(null=True)),
                ("used_until", models.DateTimeField(null=True)),
                ("used", models.BinaryField(null=True)),
                ("is_behind", models.BooleanField(default=True)),
                ("n", models.PositiveIntegerField(default=0)),
                ("probability", models.FloatField(null=True)),
                ("expected_seconds", models.FloatField(null=True)),
                (
                    "quantiles",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), null=True, size=None
                    ),
                ),
            ],
        ),
        migrations.AlterModelOptions(
            name="forecast",
            options={"ordering": ["-last_known_at", "-id"]},
        ),
        migrations.RemoveConstraint(
            model_name="forecast",
            name="forecast_knowledge_once",
        ),
        migrations.AddField(
            model_name="forecast",
            name="at",
            field=models.DateTimeField(help_text="when the run starts that it is about", null=True),
        ),
        migrations.AddField(
            model_name="forecast",
            name="below",
            field=models.SmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="forecast",
            name="last_value",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="forecast",
            name="median",
            field=models.FloatField(default=0.0),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="forecast",
            name="predictor",
            field=models.CharField(blank=True, help_text="what else it listened to", max_length=300),
        ),
        migrations.AddField(
            model_name="forecast",
            name="quantiles",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.FloatField(), null=True, size=None
            ),
        ),
        migrations.AddField(
            model_name="forecast",
            name="upto",
            field=models.SmallIntegerField(null=True),
        ),
        migrations.AlterField(
            model_name="forecast",
            name="metric",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="forecasts",
                to="monitor.metric",
            ),
        ),
        migrations.AddIndex(
            model_name="forecast",
            index=models.Index(fields=["metric", "method", "last_known_at"], name="forecast_newest"),
        ),
        migrations.AddIndex(
            model_name="forecast",
            index=models.Index(
                condition=models.Q(("truth", None)), fields=["metric"], name="forecast_unscored"
            ),
        ),
        migrations.AddField(
            model_name="forecastnews",
            name="series",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="monitor.series",
            ),
        ),
        migrations.AddField(
            model_name="forecastpredictor",
            name="metric",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="predictors",
                to="monitor.metric",
            ),
        ),
        migrations.AddField(
            model_name="forecastpredictor",
            name="series",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="monitor.series"
            ),
        ),
        migrations.AddField(
            model_name="forecaststate",
            name="forecast",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="monitor.forecast",
            ),
        ),
        migrations.AddField(
            model_name="outcome",
            name="consumer",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="outcomes",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="outcome",
            name="forecast",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="outcomes", to="monitor.forecast"
            ),
        ),
        migrations.AddField(
            model_name="outcome",
            name="metric",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="outcomes",
                to="monitor.metric",
            ),
        ),
        migrations.AddIndex(
            model_name="successstate",
            index=models.Index(
                condition=models.Q(("is_behind", True)), fields=["series"], name="successstate_behind"
            ),
        ),
        migrations.AddConstraint(
            model_name="forecastpredictor",
            constraint=models.UniqueConstraint(
                fields=("metric", "series", "name"), name="forecastpredictor_once"
            ),
        ),
        migrations.AddIndex(
            model_name="forecaststate",
            index=models.Index(
                condition=models.Q(("is_behind", True)), fields=["metric"], name="forecaststate_behind"
            ),
        ),
        migrations.AddIndex(
            model_name="outcome",
            index=models.Index(fields=["metric", "started_at"], name="outcome_history"),
        ),
        migrations.AddConstraint(
            model_name="outcome",
            constraint=models.UniqueConstraint(fields=("consumer", "job"), name="outcome_job_once"),
        ),
        migrations.RunSQL(ONE_LEVEL, ONE_OF_EACH_KNOWLEDGE),
        migrations.RunSQL(ROOM, migrations.RunSQL.noop),
        migrations.RunSQL(NEWS, migrations.RunSQL.noop),
    ]
