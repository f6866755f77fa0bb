"""Logouts that the provider reports take effect once; challenges say whether the browser is a known one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0014_ended_sessions"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProviderLogout",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.AddField(
            model_name="passkeychallenge", name="is_known", field=models.BooleanField(default=False)
        ),
    ]
