import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

# Rows are written again and again, in place where there is room beside them.
ROOM = "ALTER TABLE monitor_latest SET (fillfactor = 80)"
# Whoever brings rollups up to date makes the first rows.
MARK = """
INSERT INTO monitor_stalehour (series_id, hour)
SELECT series_id, date_trunc('hour', max(slot), 'UTC') FROM monitor_run
WHERE state NOT IN ('expected', 'claimed', 'running') GROUP BY series_id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0014_retention"),
    ]

    operations = [
        migrations.CreateModel(
            name="Latest",
            fields=[
                (
                    "series",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="monitor.series",
                    ),
                ),
                ("run", models.UUIDField(null=True)),
                ("slot", models.DateTimeField(null=True)),
                ("state", models.CharField(blank=True, max_length=10)),
                ("stage", models.CharField(blank=True, max_length=100)),
                ("failed_resource", models.CharField(blank=True, max_length=100)),
                ("ended_at", models.DateTimeField(null=True)),
                ("outcomes", models.CharField(blank=True, max_length=20)),
                (
                    "slots",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.DateTimeField(), default=list, size=None
                    ),
                ),
                (
                    "failed_resources",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(blank=True, max_length=100), default=list, size=None
                    ),
                ),
                ("hours_end", models.DateTimeField(null=True)),
                ("means", models.BinaryField(null=True)),
                ("since", models.DateTimeField(null=True)),
            ],
            options={"verbose_name_plural": "latest"},
        ),
        migrations.RunSQL(ROOM, migrations.RunSQL.noop),
        migrations.RunSQL(MARK, migrations.RunSQL.noop),
    ]
