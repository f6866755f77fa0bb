import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from monitor.migrations._batches import in_batches
from monitor.migrations._outcome_sql import STATEMENTS


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0005_natural_order_of_names"),
    ]

    operations = [
        migrations.CreateModel(
            name="DirtyOutcome",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "what",
                    models.CharField(
                        choices=[("runs", "Runs"), ("failures", "Failures"), ("suites", "Suites")],
                        max_length=8,
                    ),
                ),
                ("first", models.DateTimeField()),
                ("last", models.DateTimeField()),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="FailureHour",
            fields=[
                ("hour", models.DateTimeField(primary_key=True, serialize=False)),
                ("runs", models.BinaryField()),
                (
                    "names",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                ),
            ],
            options={
                "ordering": ["hour"],
            },
        ),
        migrations.CreateModel(
            name="OutcomeBlock",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "day", "shard", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("day", models.DateTimeField(help_text="the midnight that begins it")),
                ("shard", models.BigIntegerField()),
                ("passed", models.BinaryField()),
                ("repairs", models.BinaryField()),
            ],
            options={
                "ordering": ["day", "shard"],
            },
        ),
        migrations.CreateModel(
            name="OutcomeDay",
            fields=[
                ("day", models.DateTimeField(primary_key=True, serialize=False)),
                ("shards", models.BinaryField()),
                ("passed", models.BinaryField()),
                ("suites", models.BinaryField()),
                ("suite_passed", models.BinaryField()),
                ("suite_repairs", models.BinaryField()),
            ],
            options={
                "ordering": ["day"],
            },
        ),
        migrations.CreateModel(
            name="OutcomeProgress",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.AlterField(
            model_name="series",
            name="suite",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="series",
                to="monitor.suite",
            ),
        ),
        migrations.AddIndex(
            model_name="series",
            index=models.Index(fields=["suite", "id"], name="series_of_suite"),
        ),
        migrations.AddField(
            model_name="dirtyoutcome",
            name="series",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="monitor.series",
            ),
        ),
        migrations.AddConstraint(
            model_name="outcomeprogress",
            constraint=models.CheckConstraint(condition=models.Q(("id", 1)), name="outcome_progress_once"),
        ),
        migrations.AddIndex(
            model_name="dirtyoutcome",
            index=models.Index(fields=["first", "id"], name="dirtyoutcome_oldest"),
        ),
        *(migrations.RunSQL(statement) for statement in STATEMENTS),
    ]
    operations = [*in_batches(operations)]
