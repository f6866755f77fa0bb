"""A hold keeps the identity by which its author acted; users are warned before an identity is suspended."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0011_passkeys"),
    ]

    operations = [
        migrations.AddField(model_name="identity", name="warned_at", field=models.DateTimeField(null=True)),
        migrations.AddField(
            model_name="hold",
            name="identity",
            field=models.ForeignKey(
                editable=False,
                help_text="the identity by which the user acted; the hold is not in force while it is suspended",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="monitor.identity",
            ),
        ),
    ]
