"""Terms for second factors that stay when their user disconnects the identity that brought the role."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0017_account_mail"),
    ]

    operations = [
        migrations.AddField(
            model_name="secondfactorterm",
            name="disconnected_at",
            field=models.DateTimeField(null=True),
        ),
    ]
