from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0028_forecast_retention"),
    ]

    operations = [
        migrations.AddField(
            model_name="series",
            name="kind",
            field=models.CharField(
                blank=True,
                choices=[
                    ("grid", "the grid: applications may be forecast from it"),
                    ("application", "an application: forecast from probes of its resources, too"),
                ],
                db_default="",
                default="",
                help_text="what it tells of; empty: what its probe does",
                max_length=11,
            ),
        ),
    ]
