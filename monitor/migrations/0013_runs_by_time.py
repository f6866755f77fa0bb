import django.db.models.deletion
from django.db import migrations, models

from monitor.depot.engines.postgres import Plain

# Rows that were just changed keep their table from being altered until their constraints have been checked.
CHECK_NOW = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED"
INDEXES = """
CREATE INDEX run_expected ON monitor_run (due_at) WHERE state = 'expected';
CREATE INDEX run_kept ON monitor_run (due_at) WHERE kept_until IS NOT NULL AND state = 'expected';
CREATE INDEX run_in_flight ON monitor_run (lease_until) WHERE state IN ('claimed', 'running');
CREATE INDEX run_latest ON monitor_run (ended_at DESC);
ALTER TABLE monitor_run ADD CONSTRAINT run_series_slot_once UNIQUE (series_id, slot);
ALTER TABLE monitor_run ADD CONSTRAINT run_of_series
    FOREIGN KEY (series_id) REFERENCES monitor_series DEFERRABLE INITIALLY DEFERRED;
"""
# As migrations 0003 and 0010 made them, for a table that is another now.
TRIGGERS = """
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'run_before'::regclass AND NOT tgisinternal
"""
COPY = """
INSERT INTO monitor_run SELECT * FROM run_before;
DROP TABLE run_before CASCADE;
"""
# An identity is made of series and slot, so that it is there once although the key has the slot as well.
BY_TIME = """
ALTER TABLE monitor_run RENAME TO run_before;
CREATE TABLE monitor_run (
    LIKE run_before INCLUDING DEFAULTS INCLUDING CONSTRAINTS, CONSTRAINT run_key PRIMARY KEY (id, slot)
) PARTITION BY RANGE (slot);
"""
TOGETHER = """
ALTER TABLE monitor_run RENAME TO run_before;
CREATE TABLE monitor_run (LIKE run_before INCLUDING DEFAULTS INCLUDING CONSTRAINTS, PRIMARY KEY (id));
"""
OTHERS = {"transition": "run_id", "usage": "run_id", "alert": "opened_by_id, closed_by_id"}


def part_by_time(_apps, schema_editor):
    _go_over(schema_editor, BY_TIME)


def put_together(_apps, schema_editor):
    _go_over(schema_editor, TOGETHER)
    with schema_editor.connection.cursor() as cursor:
        for table, columns in OTHERS.items():
            for column in columns.split(", "):
                cursor.execute(
                    f"ALTER TABLE monitor_{table} ADD CONSTRAINT {table}_{column}_of_run"
                    f" FOREIGN KEY ({column}) REFERENCES monitor_run DEFERRABLE INITIALLY DEFERRED"
                )


def _go_over(schema_editor, made):
    schema_editor.execute(CHECK_NOW)
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(made)
        cursor.execute(TRIGGERS)
        triggers = [definition for (definition,) in cursor.fetchall()]
        if made == BY_TIME:
            cursor.execute(
                "SELECT DISTINCT date_trunc('month', slot, 'UTC') FROM run_before UNION SELECT now()"
            )
            Plain().make_room([month for (month,) in cursor.fetchall()])
        cursor.execute(COPY)
        cursor.execute(INDEXES)
        for definition in triggers:
            cursor.execute(definition.replace("run_before", "monitor_run"))


def to_run(model, name, **options):
    return migrations.AlterField(
        model_name=model,
        name=name,
        field=models.ForeignKey(db_constraint=False, to="monitor.run", **options),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0012_by_time"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(part_by_time, put_together)],
            state_operations=[
                to_run(
                    "transition",
                    "run",
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="transitions",
                ),
                to_run(
                    "usage",
                    "run",
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="usage",
                    db_index=False,
                ),
                to_run(
                    "alert",
                    "opened_by",
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    null=True,
                ),
                to_run(
                    "alert",
                    "closed_by",
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    null=True,
                ),
            ],
        ),
    ]
