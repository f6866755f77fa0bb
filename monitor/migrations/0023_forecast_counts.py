from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0022_forecast_marks"),
    ]

    operations = [
        migrations.AddField(
            model_name="forecast",
            name="counts",
            field=models.BooleanField(db_default=True),
        ),
    ]
