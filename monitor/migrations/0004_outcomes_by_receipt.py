"""Find the outcomes of jobs by when they were received, as forecasts read them."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("monitor", "0003_storage_areas")]

    operations = [
        migrations.RemoveIndex("outcome", "outcome_history"),
        migrations.AddIndex(
            "outcome", models.Index(fields=["metric", "received_at"], name="outcome_history")
        ),
    ]
