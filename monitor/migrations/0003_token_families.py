"""Tokens have parents, and families that end; families of present tokens end a year after their issue."""

import django.db.models.deletion
from django.db import migrations, models

_END = """
UPDATE monitor_apitoken SET family_expires_at = greatest(expires_at, created_at + interval '365 days')
WHERE expires_at IS NOT NULL
"""


class Migration(migrations.Migration):
    dependencies = [("monitor", "0002_reported_start_slot")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="family_expires_at",
            field=models.DateTimeField(
                editable=False,
                help_text="no token that comes of it is valid for longer; empty: for ever",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="parent",
            field=models.ForeignKey(
                editable=False,
                help_text="the token that it replaced, or with which it was issued or rotated",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="derived",
                to="monitor.apitoken",
            ),
        ),
        migrations.RunSQL(_END, migrations.RunSQL.noop),
    ]
