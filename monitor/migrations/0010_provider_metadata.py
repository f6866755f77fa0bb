"""What the identity provider publishes is stored: logins go on while it is unreachable for a while."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0009_administrators_remain"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProviderMetadata",
            fields=[
                ("issuer", models.TextField(primary_key=True, serialize=False)),
                ("discovery", models.TextField(blank=True)),
                ("keys", models.TextField(blank=True)),
                ("fetched_at", models.DateTimeField(null=True)),
                ("keys_asked_at", models.DateTimeField(null=True)),
                ("failed_at", models.DateTimeField(null=True)),
                ("fault", models.TextField(blank=True)),
                ("is_unreachable", models.BooleanField(default=False)),
            ],
            options={
                "verbose_name_plural": "provider metadata",
            },
        ),
    ]
