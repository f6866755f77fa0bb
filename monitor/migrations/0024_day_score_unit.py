from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0023_forecast_counts"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="dayscore", name="dayscore_once"),
        migrations.AddConstraint(
            model_name="dayscore",
            constraint=models.UniqueConstraint(
                fields=("metric", "day", "suite", "site", "method", "unit"),
                name="dayscore_once",
                nulls_distinct=False,
            ),
        ),
    ]
