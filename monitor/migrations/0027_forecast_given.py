import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0026_forecast_new"),
    ]

    operations = [
        migrations.CreateModel(
            name="ForecastGiven",
            fields=[
                (
                    "forecast",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="given",
                        serialize=False,
                        to="monitor.forecast",
                    ),
                ),
                ("given_at", models.DateTimeField(db_index=True)),
            ],
            options={
                "verbose_name_plural": "forecasts given",
            },
        ),
    ]
