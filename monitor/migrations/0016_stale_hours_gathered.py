from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0015_latest"),
    ]

    operations = [
        migrations.AddField(
            model_name="stalehour",
            name="gathered",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddIndex(
            model_name="stalehour",
            index=models.Index(
                condition=models.Q(("gathered", False)), fields=["series", "hour"], name="stalehour_new"
            ),
        ),
    ]
