from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0027_forecast_given"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="forecast",
            index=models.Index(
                condition=models.Q(("at__isnull", False), ("counts", False), _connector="OR"),
                fields=["issued_at"],
                name="forecast_passing",
            ),
        ),
        migrations.AddIndex(
            model_name="dayscore",
            index=models.Index(fields=["suite", "day"], name="dayscore_of_suite"),
        ),
    ]
