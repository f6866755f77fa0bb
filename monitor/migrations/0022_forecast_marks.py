import django.db.models.deletion
from django.db import migrations, models

# States come compressed; to try that once more would cost most of what it takes to write one.
AS_IT_IS = """
ALTER TABLE monitor_forecaststate ALTER COLUMN state SET STORAGE EXTERNAL;
ALTER TABLE monitor_forecastmark ALTER COLUMN state SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0021_day_score"),
    ]

    operations = [
        migrations.AddField(
            model_name="forecaststate",
            name="marked_until",
            field=models.DateTimeField(help_text="used_until of the newest mark", null=True),
        ),
        migrations.CreateModel(
            name="ForecastMark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("used_until", models.DateTimeField()),
                ("state", models.BinaryField()),
                ("used", models.BinaryField()),
                ("n", models.PositiveIntegerField()),
                ("last_time", models.DateTimeField(null=True)),
                ("last_value", models.FloatField(null=True)),
                (
                    "metric",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="monitor.metric",
                    ),
                ),
            ],
            options={
                "ordering": ["metric", "used_until"],
                "constraints": [
                    models.UniqueConstraint(fields=("metric", "used_until"), name="forecastmark_once")
                ],
            },
        ),
        migrations.RunSQL(AS_IT_IS, migrations.RunSQL.noop),
    ]
