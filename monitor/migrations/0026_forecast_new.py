from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0025_forecast_others"),
    ]

    operations = [
        migrations.AddField(
            model_name="forecaststate",
            name="is_new",
            field=models.BooleanField(db_default=False, help_text="nobody has chosen its predictors yet"),
        ),
        migrations.AddIndex(
            model_name="forecaststate",
            index=models.Index(
                condition=models.Q(("is_new", True)), fields=["metric"], name="forecaststate_new"
            ),
        ),
    ]
