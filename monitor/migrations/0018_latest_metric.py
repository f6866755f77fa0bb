from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0017_usage_unchecked"),
    ]

    operations = [
        migrations.AddField(
            model_name="latest",
            name="metric",
            field=models.BigIntegerField(null=True),
        ),
    ]
