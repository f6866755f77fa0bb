import gzip

import django.db.models.deletion
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations, models
from django.db.migrations.exceptions import IrreversibleError

from monitor.compression import unpack
from monitor.depot.engines import engine
from monitor.depot.engines.postgres import Plain

# The key has all columns, so that what asks for one metric never looks at the rows themselves, which lie as
# they came: a metric's are far apart.
SAMPLES_BY_TIME = """
ALTER TABLE monitor_sample RENAME TO sample_before;
CREATE TABLE monitor_sample (
    metric_id bigint NOT NULL,
    time timestamptz NOT NULL,
    known_at timestamptz NOT NULL,
    value double precision NOT NULL,
    passed boolean NOT NULL,
    CONSTRAINT sample_key PRIMARY KEY (metric_id, time) INCLUDE (known_at, value, passed)
) PARTITION BY RANGE (time);
CREATE INDEX sample_time_brin ON monitor_sample USING brin (time);
"""
SAMPLES_TOGETHER = """
ALTER TABLE monitor_sample RENAME TO sample_before;
CREATE TABLE monitor_sample (
    metric_id bigint NOT NULL REFERENCES monitor_metric DEFERRABLE INITIALLY DEFERRED,
    time timestamptz NOT NULL,
    known_at timestamptz NOT NULL,
    value double precision NOT NULL,
    passed boolean NOT NULL,
    PRIMARY KEY (metric_id, time)
);
"""
REPORTS_BY_TIME = """
ALTER TABLE monitor_rawreport RENAME TO rawreport_before;
CREATE TABLE monitor_rawreport (
    run_id uuid NOT NULL,
    slot timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    packing smallint NOT NULL CHECK (packing >= 0),
    packed bytea NOT NULL,
    CONSTRAINT rawreport_key PRIMARY KEY (run_id, slot)
) PARTITION BY RANGE (slot);
ALTER TABLE monitor_rawreport ALTER packed SET STORAGE EXTERNAL;
CREATE INDEX rawreport_slot_brin ON monitor_rawreport USING brin (slot);
"""
REPORTS_TOGETHER = """
ALTER TABLE monitor_rawreport RENAME TO rawreport_before;
CREATE TABLE monitor_rawreport (
    run_id uuid PRIMARY KEY REFERENCES monitor_run DEFERRABLE INITIALLY DEFERRED,
    received_at timestamptz NOT NULL,
    body_gzip bytea NOT NULL
);
"""
# What ``monitor.depot.sketch.key`` does.
SKETCH_KEY = """
CREATE FUNCTION monitor_sketch_key(value double precision) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN abs(value) < 1e-09 THEN 0
    ELSE sign(value) * (1037 + ceil(ln(least(abs(value), 1e+21)) / 0.020000666706669435))
END
"""
CHECK_NOW = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED"
PACKED_AT_ONCE = 1000


def part_by_time(_apps, schema_editor):
    schema_editor.execute(CHECK_NOW)
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(SAMPLES_BY_TIME)
        cursor.execute(REPORTS_BY_TIME)
        cursor.execute(
            "SELECT DISTINCT date_trunc('month', time, 'UTC') FROM sample_before UNION"
            " SELECT date_trunc('month', slot, 'UTC') FROM rawreport_before JOIN monitor_run ON id = run_id"
            " UNION SELECT now()"
        )
        Plain().make_room([month for (month,) in cursor.fetchall()])
        cursor.execute(
            "INSERT INTO monitor_sample SELECT metric_id, time, known_at, value, passed FROM sample_before"
        )
        cursor.execute(
            "INSERT INTO monitor_rawreport SELECT run_id, slot, received_at, 0, body_gzip"
            " FROM rawreport_before JOIN monitor_run ON id = run_id"
        )
        cursor.execute("DROP TABLE sample_before, rawreport_before")


def put_together(_apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(SAMPLES_TOGETHER)
        cursor.execute(REPORTS_TOGETHER)
        cursor.execute(
            "INSERT INTO monitor_sample SELECT metric_id, time, known_at, value, passed FROM sample_before"
        )
        cursor.execute("SELECT run_id, received_at, packing, packed FROM rawreport_before")
        while rows := cursor.fetchmany(PACKED_AT_ONCE):
            with schema_editor.connection.cursor() as writing:
                writing.executemany(
                    "INSERT INTO monitor_rawreport VALUES (%s, %s, %s)",
                    [
                        (run, received_at, gzip.compress(unpack(packing, bytes(packed)), mtime=0))
                        for run, received_at, packing, packed in rows
                    ],
                )
        cursor.execute("DROP TABLE sample_before, rawreport_before")
        cursor.execute(CHECK_NOW)


def mark_everything(_apps, schema_editor):
    """Nothing has been rolled up yet."""
    schema_editor.execute(
        "INSERT INTO monitor_stalehour (series_id, hour)"
        " SELECT DISTINCT series_id, date_trunc('hour', time, 'UTC') FROM monitor_sample"
        " JOIN monitor_metric ON monitor_metric.id = metric_id"
        " JOIN monitor_segment ON monitor_segment.id = segment_id"
    )


def check_that_it_is_plain(_apps, _schema_editor):
    """What became a hypertable or a continuous aggregate stays one."""
    if engine().name != Plain.name:
        raise IrreversibleError(
            f"this depot uses {engine().name}, and before 0012 there was nothing for that: restore a backup of then"
        )


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0011_run_kept"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(part_by_time, put_together)],
            state_operations=[
                migrations.AlterField(
                    model_name="sample",
                    name="metric",
                    field=models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="samples",
                        to="monitor.metric",
                    ),
                ),
                migrations.AddIndex(
                    model_name="sample", index=BrinIndex(fields=["time"], name="sample_time_brin")
                ),
                migrations.DeleteModel(name="RawReport"),
                migrations.CreateModel(
                    name="RawReport",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "run_id",
                                "slot",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("slot", models.DateTimeField()),
                        ("received_at", models.DateTimeField()),
                        (
                            "packing",
                            models.PositiveSmallIntegerField(
                                help_text="how the body was packed: monitor.depot.packing"
                            ),
                        ),
                        ("packed", models.BinaryField()),
                        (
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="raw_reports",
                                to="monitor.run",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-received_at"],
                        "indexes": [BrinIndex(fields=["slot"], name="rawreport_slot_brin")],
                    },
                ),
            ],
        ),
        migrations.CreateModel(
            name="HourRollup",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "metric_id", "bucket", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("bucket", models.DateTimeField()),
                ("n", models.IntegerField()),
                ("passed", models.IntegerField()),
                ("mean", models.FloatField(null=True)),
                ("min", models.FloatField(null=True)),
                ("max", models.FloatField(null=True)),
                ("stdev", models.FloatField(null=True)),
                ("sketch", ArrayField(models.SmallIntegerField(), null=True)),
                (
                    "metric",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="monitor.metric",
                    ),
                ),
            ],
            options={"ordering": ["bucket"], "abstract": False},
        ),
        migrations.CreateModel(
            name="DayRollup",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "metric_id", "bucket", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("bucket", models.DateTimeField()),
                ("n", models.IntegerField()),
                ("passed", models.IntegerField()),
                ("mean", models.FloatField(null=True)),
                ("min", models.FloatField(null=True)),
                ("max", models.FloatField(null=True)),
                ("stdev", models.FloatField(null=True)),
                ("sketch", ArrayField(models.SmallIntegerField(), null=True)),
                (
                    "metric",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="monitor.metric",
                    ),
                ),
            ],
            options={"ordering": ["bucket"], "abstract": False},
        ),
        migrations.CreateModel(
            name="StaleHour",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                (
                    "series",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="monitor.series",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "indexes": [models.Index(fields=["series", "hour"], name="stalehour_series_hour")],
            },
        ),
        migrations.RunSQL(SKETCH_KEY, "DROP FUNCTION monitor_sketch_key"),
        migrations.RunPython(mark_everything, check_that_it_is_plain),
    ]
