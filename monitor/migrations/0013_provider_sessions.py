"""Identities know the sessions at the provider to which their logins belong."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0012_holds_of_identities"),
    ]

    operations = [
        migrations.AddField(
            model_name="identity",
            name="provider_sessions",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=255), blank=True, default=list, size=None
            ),
        ),
    ]
