"""The schema of the depot: the models' tables, then what Django cannot express (``_database_sql``)."""

from datetime import UTC, datetime

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import monitor.models.natural_order
import monitor.models.site
from monitor.core.db.partitions import create_for
from monitor.migrations import _database_sql, _outcome_sql, _standings_sql
from monitor.migrations._create_models import CreateModels


def make_first_partitions(_apps, _schema_editor):
    create_for([datetime.now(UTC)])


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        # Other migrations that change users run first: they would render our models again, which refer to users.
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
        ("usersessions", "0001_initial"),
    ]

    operations = [
        CreateModels(
            [
                migrations.CreateModel(
                    name="Site",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.SlugField(unique=True)),
                        ("title", models.CharField(blank=True, max_length=200)),
                        (
                            "latitude",
                            models.FloatField(
                                blank=True,
                                help_text="degrees, north positive; with the longitude, the place of the site on the map",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(-90),
                                    django.core.validators.MaxValueValidator(90),
                                ],
                            ),
                        ),
                        (
                            "longitude",
                            models.FloatField(
                                blank=True,
                                help_text="degrees, east positive",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(-180),
                                    django.core.validators.MaxValueValidator(180),
                                ],
                            ),
                        ),
                        (
                            "is_public",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="whether the public status page shows it, without a login",
                            ),
                        ),
                        (
                            "runs_at_once",
                            models.PositiveSmallIntegerField(
                                blank=True,
                                help_text="how many runs may use the site at the same time; empty: unlimited",
                                null=True,
                            ),
                        ),
                        (
                            "runs_per_day",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="how many runs may use the site per day (UTC); empty: unlimited",
                                null=True,
                            ),
                        ),
                        (
                            "bytes_per_day",
                            models.PositiveBigIntegerField(
                                blank=True,
                                help_text="bytes that the site sends and receives per day (UTC); empty: unlimited",
                                null=True,
                            ),
                        ),
                        (
                            "cpu_hours_per_day",
                            models.FloatField(
                                blank=True,
                                help_text="CPU-hours of batch jobs per day (UTC); empty: unlimited",
                                null=True,
                            ),
                        ),
                        (
                            "notes",
                            models.TextField(
                                blank=True,
                                db_default="",
                                help_text="what operators should know; plain text, shown on the site's page",
                                max_length=4000,
                            ),
                        ),
                        (
                            "contacts",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value([], models.JSONField()),
                                default=list,
                                help_text='whom to ask, e.g. [{"name": "Help desk", "email": "help@example.org"}]',
                                validators=[monitor.models.site.check_contacts],
                            ),
                        ),
                        (
                            "sort_name",
                            models.GeneratedField(
                                db_persist=True,
                                expression=monitor.models.natural_order.SortName(models.F("name")),
                                output_field=models.TextField(db_collation="C"),
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["sort_name"],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("cpu_hours_per_day__gte", 0)),
                                name="site_cpu_hours_not_negative",
                                violation_error_message="Expected CPU-hours per day of at least 0, or none.",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Suite",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.SlugField(unique=True)),
                        ("title", models.CharField(blank=True, max_length=200)),
                        (
                            "is_public",
                            models.BooleanField(
                                db_default=False,
                                default=False,
                                help_text="whether the public status page shows it, without a login",
                            ),
                        ),
                        (
                            "keep_reports_days",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="days to keep raw reports; empty: for ever",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(36500),
                                ],
                            ),
                        ),
                        (
                            "keep_samples_days",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="days to keep samples; empty: for ever",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(36500),
                                ],
                            ),
                        ),
                        (
                            "keep_hourly_days",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="days to keep hourly rollups; empty: for ever",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(36500),
                                ],
                            ),
                        ),
                        (
                            "keep_daily_days",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="days to keep daily rollups; empty: for ever",
                                null=True,
                                validators=[
                                    django.core.validators.MinValueValidator(1),
                                    django.core.validators.MaxValueValidator(36500),
                                ],
                            ),
                        ),
                        ("viewers", models.ManyToManyField(blank=True, to="auth.group")),
                        (
                            "sort_name",
                            models.GeneratedField(
                                db_persist=True,
                                expression=monitor.models.natural_order.SortName(models.F("name")),
                                output_field=models.TextField(db_collation="C"),
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["sort_name"],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("keep_hourly_days__isnull", True),
                                    models.Q(
                                        ("keep_samples_days__isnull", False),
                                        ("keep_samples_days__lte", models.F("keep_hourly_days")),
                                    ),
                                    _connector="OR",
                                ),
                                name="suite_samples_go_first",
                                violation_error_message="Expected hourly rollups to be kept at least as long as samples.",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("keep_daily_days__isnull", True),
                                    models.Q(
                                        ("keep_hourly_days__isnull", False),
                                        ("keep_hourly_days__lte", models.F("keep_daily_days")),
                                    ),
                                    _connector="OR",
                                ),
                                name="suite_hours_go_first",
                                violation_error_message="Expected daily rollups to be kept at least as long as hourly ones.",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Reporter",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.SlugField(unique=True)),
                        ("capacity", models.PositiveSmallIntegerField(default=4)),
                        (
                            "site",
                            models.ForeignKey(
                                blank=True,
                                help_text="the site at which it runs as an agent; empty: a Celery worker",
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="reporters",
                                to="monitor.site",
                            ),
                        ),
                        (
                            "paced_until",
                            models.DateTimeField(
                                editable=False,
                                help_text="when its records without a stored report would have arrived at the pace that is allowed",
                                null=True,
                            ),
                        ),
                        (
                            "sort_name",
                            models.GeneratedField(
                                db_persist=True,
                                expression=monitor.models.natural_order.SortName(models.F("name")),
                                output_field=models.TextField(db_collation="C"),
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["sort_name"],
                        "permissions": [("manage_reporters", "Can create, enrol and revoke reporters")],
                    },
                ),
                migrations.CreateModel(
                    name="Series",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.SlugField(max_length=100, unique=True)),
                        ("probe", models.CharField(max_length=100)),
                        (
                            "kind",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("grid", "the grid: predicts applications"),
                                    (
                                        "application",
                                        "an application: predicted from probes of its resources too",
                                    ),
                                ],
                                db_default="",
                                default="",
                                help_text="what its runs measure; empty: as its probe says",
                                max_length=11,
                            ),
                        ),
                        ("parameters", models.JSONField(blank=True, default=dict)),
                        (
                            "schedule",
                            models.CharField(
                                blank=True,
                                help_text="five-field cron expression; H is a slot hashed from the name",
                                max_length=200,
                            ),
                        ),
                        (
                            "timezone",
                            models.CharField(
                                default="UTC",
                                help_text="time zone of the schedule, an IANA name",
                                max_length=50,
                            ),
                        ),
                        (
                            "starts_at",
                            models.DateTimeField(
                                blank=True, help_text="no slots before this time", null=True
                            ),
                        ),
                        (
                            "ends_at",
                            models.DateTimeField(blank=True, help_text="no slots after this time", null=True),
                        ),
                        (
                            "follows",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("with", "with the leader: at the leader's slots"),
                                    (
                                        "after",
                                        "after the leader: when the leader's run of the slot has ended",
                                    ),
                                ],
                                max_length=5,
                            ),
                        ),
                        (
                            "delay_seconds",
                            models.PositiveIntegerField(
                                default=0,
                                help_text="delay after the leader's slot, or after the end of its run",
                            ),
                        ),
                        (
                            "jitter_seconds",
                            models.PositiveIntegerField(
                                default=0,
                                help_text="start each run up to this long after its slot, at a hashed time",
                            ),
                        ),
                        (
                            "retry_schedule",
                            models.CharField(
                                blank=True,
                                help_text="cron expression for additional runs after one that did not pass",
                                max_length=200,
                            ),
                        ),
                        (
                            "retry_passes",
                            models.PositiveSmallIntegerField(
                                default=1,
                                help_text="stop the additional runs after this many passed runs in a row",
                            ),
                        ),
                        (
                            "exclusive",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("site", "site: shares no site with another exclusive series"),
                                    ("link", "link: shares no pair of sites"),
                                ],
                                help_text="what it must not share with another exclusive series while it runs",
                                max_length=4,
                            ),
                        ),
                        (
                            "exclusive_wait_seconds",
                            models.PositiveIntegerField(
                                default=900, help_text="how long a slot may wait for other exclusive series"
                            ),
                        ),
                        (
                            "max_load1",
                            models.FloatField(
                                blank=True,
                                help_text="skip a run while the one-minute load average of any of its resources is above this",
                                null=True,
                            ),
                        ),
                        (
                            "warm_up_runs",
                            models.PositiveSmallIntegerField(
                                default=0,
                                help_text="runs of the probe before the measured one, at most 5; their values are discarded",
                            ),
                        ),
                        ("enabled", models.BooleanField(default=True)),
                        ("scheduled_since", models.DateTimeField(editable=False, null=True)),
                        ("expanded_until", models.DateTimeField(editable=False, null=True)),
                        ("limit_seconds", models.FloatField(default=1800.0)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "leader",
                            models.ForeignKey(
                                blank=True,
                                help_text="the series that it follows instead of having a schedule",
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="followers",
                                to="monitor.series",
                            ),
                        ),
                        (
                            "reporter",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="series",
                                to="monitor.reporter",
                            ),
                        ),
                        (
                            "suite",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="series",
                                to="monitor.suite",
                            ),
                        ),
                        (
                            "sort_name",
                            models.GeneratedField(
                                db_persist=True,
                                expression=monitor.models.natural_order.SortName(models.F("name")),
                                output_field=models.TextField(db_collation="C"),
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "series",
                        "ordering": ["sort_name"],
                        "permissions": [("run_series", "Can run a series now")],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("limit_seconds__gt", 0)), name="series_limit_positive"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("max_load1__gt", 0)),
                                name="series_max_load1_positive",
                                violation_error_message="Expected a maximum load above 0, or none.",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("warm_up_runs__lte", 5)),
                                name="series_warm_up_runs_few",
                                violation_error_message="Expected at most 5 warm-up runs.",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("follows", ""), ("leader", None)),
                                    models.Q(
                                        models.Q(("follows", ""), _negated=True),
                                        ("leader__isnull", False),
                                        ("schedule", ""),
                                    ),
                                    _connector="OR",
                                ),
                                name="series_has_a_schedule_or_follows",
                            ),
                        ],
                        "indexes": [
                            models.Index(fields=["suite", "id"], name="series_of_suite"),
                            models.Index(fields=["probe", "suite", "id"], name="series_of_probe"),
                            models.Index(
                                fields=["sort_name"],
                                include=["id", "suite", "name"],
                                name="series_by_name",
                            ),
                            models.Index(
                                condition=models.Q(("probe__startswith", "import-")),
                                fields=["id"],
                                name="series_imported",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Run",
                    fields=[
                        ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                        ("slot", models.DateTimeField()),
                        (
                            "due_at",
                            models.DateTimeField(
                                help_text="when it may start: its slot, plus the jitter of its series"
                            ),
                        ),
                        (
                            "wait_until",
                            models.DateTimeField(
                                help_text="how long it may wait for exclusive series or for its leader",
                                null=True,
                            ),
                        ),
                        (
                            "trigger",
                            models.CharField(
                                default="schedule",
                                help_text="the schedule, or the user who requested it, and why",
                                max_length=900,
                            ),
                        ),
                        (
                            "forced",
                            models.BooleanField(default=False, help_text="requested in spite of a hold"),
                        ),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("expected", "Expected"),
                                    ("claimed", "Claimed"),
                                    ("running", "Running"),
                                    ("passed", "Passed"),
                                    ("failed", "Failed"),
                                    ("broken", "Broken"),
                                    ("no_data", "No Data"),
                                    ("timed_out", "Timed Out"),
                                    ("skipped", "Skipped"),
                                    ("missed", "Missed"),
                                    ("lost", "Lost"),
                                ],
                                default="expected",
                                max_length=10,
                            ),
                        ),
                        ("reason", models.TextField(blank=True)),
                        (
                            "cause",
                            models.CharField(
                                blank=True, help_text="what caused the last transition", max_length=200
                            ),
                        ),
                        ("attempt", models.PositiveSmallIntegerField(default=0)),
                        (
                            "stage",
                            models.CharField(
                                blank=True,
                                help_text="the current stage, or the one that failed",
                                max_length=100,
                            ),
                        ),
                        ("claimed_at", models.DateTimeField(null=True)),
                        ("lease_until", models.DateTimeField(null=True)),
                        ("started_at", models.DateTimeField(null=True)),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("failed_resource", models.CharField(blank=True, max_length=100)),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="runs",
                                to="monitor.series",
                            ),
                        ),
                        (
                            "signature",
                            models.ForeignKey(
                                db_index=False,
                                editable=False,
                                help_text="the cause of its failure; null if it has none, or is not classified yet",
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="runs",
                                to="monitor.failuresignature",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-slot"],
                        "indexes": [
                            models.Index(
                                condition=models.Q(("state", "expected")),
                                fields=["due_at"],
                                name="run_expected",
                            ),
                            models.Index(
                                condition=models.Q(("state", "expected"), ("wait_until__isnull", False)),
                                fields=["due_at"],
                                name="run_waiting",
                            ),
                            models.Index(
                                condition=models.Q(("state__in", ["claimed", "running"])),
                                fields=["lease_until"],
                                name="run_in_flight",
                            ),
                            models.Index(fields=["-ended_at"], name="run_latest"),
                            models.Index(
                                condition=models.Q(
                                    (
                                        "state__in",
                                        (
                                            "passed",
                                            "failed",
                                            "broken",
                                            "no_data",
                                            "timed_out",
                                            "skipped",
                                            "missed",
                                            "lost",
                                        ),
                                    )
                                ),
                                fields=["slot", "id"],
                                name="run_slots",
                            ),
                            models.Index(
                                condition=models.Q(
                                    ("signature__isnull", True),
                                    ("state__in", ["failed", "broken", "timed_out"]),
                                ),
                                fields=["slot"],
                                name="run_unclassified",
                            ),
                            models.Index(
                                condition=models.Q(
                                    ("state__in", ("failed", "broken", "timed_out", "lost", "missed"))
                                ),
                                fields=["slot", "id", "series", "stage", "signature"],
                                name="run_not_passed",
                            ),
                            models.Index(
                                condition=models.Q(("signature__isnull", False)),
                                fields=["signature", "slot"],
                                name="run_of_cause",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("series", "slot"), name="run_series_slot_once"),
                            models.CheckConstraint(
                                condition=models.Q(
                                    (
                                        "state__in",
                                        [
                                            "expected",
                                            "claimed",
                                            "running",
                                            "passed",
                                            "failed",
                                            "broken",
                                            "no_data",
                                            "timed_out",
                                            "skipped",
                                            "missed",
                                            "lost",
                                        ],
                                    )
                                ),
                                name="run_state_known",
                            ),
                        ],
                    },
                ),
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
                                help_text="compression format of the body (monitor.core.compression)"
                            ),
                        ),
                        ("packed", models.BinaryField()),
                        (
                            "parsed_by",
                            models.PositiveSmallIntegerField(
                                db_default=1, help_text="version of the parser that made the samples"
                            ),
                        ),
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
                        "indexes": [
                            django.contrib.postgres.indexes.BrinIndex(
                                fields=["slot"], name="rawreport_slot_brin"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Segment",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("number", models.PositiveIntegerField()),
                        ("probe", models.CharField(max_length=200)),
                        ("probe_version", models.CharField(max_length=200)),
                        ("parameters", models.JSONField(default=dict)),
                        (
                            "bindings",
                            models.JSONField(
                                default=dict, help_text="role -> names of its resources, in order"
                            ),
                        ),
                        ("fingerprint", models.CharField(max_length=64)),
                        ("began_at", models.DateTimeField()),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="segments",
                                to="monitor.series",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["series_id", "number"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("series", "fingerprint"), name="segment_fingerprint_once"
                            ),
                            models.UniqueConstraint(fields=("series", "number"), name="segment_number_once"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Metric",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=200)),
                        ("unit", models.CharField(max_length=50)),
                        (
                            "segment",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="metrics",
                                to="monitor.segment",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["segment_id", "name"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("segment", "name"), name="metric_name_once_a_segment"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Forecast",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("issued_at", models.DateTimeField()),
                        ("method", models.CharField(max_length=50)),
                        (
                            "predictor",
                            models.CharField(
                                blank=True, help_text="the predictor that was used", max_length=300
                            ),
                        ),
                        (
                            "at",
                            models.DateTimeField(help_text="start of the run that is forecast", null=True),
                        ),
                        ("level", models.FloatField(help_text="coverage of the interval, 0 to 1")),
                        (
                            "last_time",
                            models.DateTimeField(help_text="slot of the newest value that was used"),
                        ),
                        (
                            "last_known_at",
                            models.DateTimeField(
                                help_text="when the latest input that was used became known"
                            ),
                        ),
                        ("last_value", models.FloatField(null=True)),
                        ("n", models.PositiveIntegerField(help_text="values that were used")),
                        ("mean", models.FloatField()),
                        ("median", models.FloatField()),
                        ("lower", models.FloatField()),
                        ("upper", models.FloatField()),
                        (
                            "quantiles",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.FloatField(), null=True, size=None
                            ),
                        ),
                        ("others", models.JSONField(null=True)),
                        ("truth", models.FloatField(null=True)),
                        ("truth_time", models.DateTimeField(null=True)),
                        ("below", models.SmallIntegerField(null=True)),
                        ("upto", models.SmallIntegerField(null=True)),
                        ("counts", models.BooleanField(db_default=True)),
                        (
                            "metric",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="forecasts",
                                to="monitor.metric",
                            ),
                        ),
                        (
                            "basis",
                            models.JSONField(
                                help_text="the replays and runs of a forecast from elsewhere", null=True
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-last_known_at", "-id"],
                        "indexes": [
                            models.Index(
                                fields=["metric", "method", "last_known_at"], name="forecast_newest"
                            ),
                            models.Index(
                                condition=models.Q(("truth", None)),
                                fields=["metric"],
                                name="forecast_unscored",
                            ),
                            models.Index(
                                condition=models.Q(("at__isnull", False), ("counts", False), _connector="OR"),
                                fields=["issued_at"],
                                name="forecast_passing",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DemoWeather",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("profile", models.CharField(max_length=60)),
                        ("seed", models.TextField()),
                        ("scale", models.FloatField()),
                        ("since", models.DateTimeField()),
                    ],
                    options={
                        "verbose_name_plural": "weather of the demo",
                        "ordering": ["-since", "-pk"],
                    },
                ),
                migrations.CreateModel(
                    name="Heartbeat",
                    fields=[
                        ("name", models.CharField(max_length=60, primary_key=True, serialize=False)),
                        ("seen_at", models.DateTimeField()),
                        ("back_at", models.DateTimeField(help_text="when its last silence ended", null=True)),
                    ],
                    options={
                        "ordering": ["name"],
                    },
                ),
                migrations.CreateModel(
                    name="Resource",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.SlugField(unique=True)),
                        (
                            "scratch",
                            models.CharField(
                                help_text="absolute path of a directory on the resource", max_length=500
                            ),
                        ),
                        (
                            "shell",
                            models.JSONField(
                                default=dict, help_text='e.g. {"kind": "ssh", "host": "login.example.org"}'
                            ),
                        ),
                        ("transfer", models.JSONField(default=dict, help_text='e.g. {"kind": "ssh"}')),
                        ("batch", models.JSONField(default=dict, help_text='e.g. {"kind": "fork"}')),
                        (
                            "address",
                            models.CharField(
                                blank=True,
                                help_text="host name or IP address under which other sites reach it",
                                max_length=253,
                            ),
                        ),
                        (
                            "site",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="resources",
                                to="monitor.site",
                            ),
                        ),
                        (
                            "storage",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value({}, models.JSONField()),
                                default=dict,
                                help_text='its storage, e.g. {"medium": "flash", "capacity_gb": 960, "price": 400}; docs/storage.md',
                            ),
                        ),
                        (
                            "sort_name",
                            models.GeneratedField(
                                db_persist=True,
                                expression=monitor.models.natural_order.SortName(models.F("name")),
                                output_field=models.TextField(db_collation="C"),
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["sort_name"],
                    },
                ),
                migrations.CreateModel(
                    name="ApiToken",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=100)),
                        (
                            "prefix",
                            models.CharField(help_text="the first characters of the token", max_length=20),
                        ),
                        ("sha256", models.CharField(max_length=64, unique=True)),
                        ("scopes", models.JSONField(default=list)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("expires_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "rotated_at",
                            models.DateTimeField(
                                editable=False, help_text="when another token replaced it", null=True
                            ),
                        ),
                        ("revoked_at", models.DateTimeField(editable=False, null=True)),
                        ("last_used_at", models.DateTimeField(editable=False, null=True)),
                        (
                            "last_used_from",
                            models.CharField(
                                blank=True, editable=False, help_text="an address", max_length=45
                            ),
                        ),
                        (
                            "site",
                            models.ForeignKey(
                                blank=True,
                                help_text="the only site at which it may change anything; empty: those of its user",
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="tokens",
                                to="monitor.site",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="api_tokens",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "reporter",
                            models.ForeignKey(
                                blank=True,
                                help_text="the reporter whose reports it may send; needed for the scope report",
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="tokens",
                                to="monitor.reporter",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["name", "-created_at", "-id"],
                    },
                ),
                migrations.CreateModel(
                    name="AuditEvent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("at", models.DateTimeField()),
                        ("last_at", models.DateTimeField()),
                        ("repeats", models.PositiveIntegerField(default=1)),
                        (
                            "outcome",
                            models.CharField(
                                choices=[
                                    ("begun", "Begun"),
                                    ("done", "Done"),
                                    ("denied", "Denied"),
                                    ("failed", "Failed"),
                                ],
                                max_length=6,
                            ),
                        ),
                        (
                            "channel",
                            models.CharField(
                                choices=[
                                    ("page", "Page"),
                                    ("api", "Api"),
                                    ("admin", "Admin"),
                                    ("command", "Command"),
                                ],
                                max_length=7,
                            ),
                        ),
                        ("user", models.CharField(blank=True, max_length=200)),
                        ("token", models.CharField(blank=True, max_length=20)),
                        ("session", models.CharField(blank=True, max_length=8)),
                        ("address", models.CharField(blank=True, max_length=45)),
                        ("action", models.CharField(max_length=200)),
                        ("target", models.CharField(blank=True, max_length=500)),
                        ("status", models.SmallIntegerField(default=0)),
                        ("changes", models.JSONField(default=list)),
                    ],
                    options={
                        "ordering": ["-last_at", "-id"],
                        "default_permissions": ("view",),
                        "indexes": [
                            models.Index(fields=["-last_at", "-id"], name="audit_newest"),
                            models.Index(fields=["user", "-last_at", "-id"], name="audit_of_user"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SiteAdministrator",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "site",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="administrators",
                                to="monitor.site",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="administered_sites",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["site__name", "user__username"],
                        "constraints": [
                            models.UniqueConstraint(fields=("site", "user"), name="site_administrator_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="LatestRun",
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
                                base_field=models.CharField(blank=True, max_length=100),
                                default=list,
                                size=None,
                            ),
                        ),
                        ("metric", models.BigIntegerField(null=True)),
                        ("hours_end", models.DateTimeField(null=True)),
                        ("means", models.BinaryField(null=True)),
                        ("since", models.DateTimeField(null=True)),
                    ],
                    options={
                        "verbose_name_plural": "latest runs",
                        "indexes": [
                            models.Index(
                                condition=models.Q(("state__in", ["failed", "timed_out"])),
                                fields=["failed_resource"],
                                name="latestrun_failing",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AlertRule",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.SlugField(unique=True)),
                        ("title", models.CharField(blank=True, max_length=200)),
                        ("enabled", models.BooleanField(default=True)),
                        (
                            "everything",
                            models.BooleanField(
                                default=False, help_text="watch every series, or every remote reporter"
                            ),
                        ),
                        (
                            "probes",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.CharField(max_length=100),
                                blank=True,
                                default=list,
                                size=None,
                            ),
                        ),
                        (
                            "severity",
                            models.CharField(
                                choices=[("minor", "Minor"), ("major", "Major"), ("critical", "Critical")],
                                default="major",
                                max_length=8,
                            ),
                        ),
                        ("condition", models.CharField(help_text="the kind of condition", max_length=50)),
                        (
                            "threshold",
                            models.PositiveIntegerField(
                                help_text="how many runs, records or seconds the condition asks for"
                            ),
                        ),
                        (
                            "notify",
                            models.JSONField(
                                blank=True, default=list, help_text='channels, e.g. [{"kind": "log"}]'
                            ),
                        ),
                        (
                            "repeat_seconds",
                            models.PositiveIntegerField(
                                blank=True,
                                help_text="notify again while an alert is open, after this long; empty: never",
                                null=True,
                            ),
                        ),
                        ("judged_as", models.CharField(blank=True, editable=False, max_length=64)),
                        (
                            "series",
                            models.ManyToManyField(
                                blank=True, related_name="alert_rules", to="monitor.series"
                            ),
                        ),
                        (
                            "sites",
                            models.ManyToManyField(blank=True, related_name="alert_rules", to="monitor.site"),
                        ),
                        (
                            "suites",
                            models.ManyToManyField(
                                blank=True, related_name="alert_rules", to="monitor.suite"
                            ),
                        ),
                        ("is_default", models.BooleanField(default=False, editable=False)),
                        (
                            "reporters",
                            models.ManyToManyField(
                                blank=True, related_name="alert_rules", to="monitor.reporter"
                            ),
                        ),
                        (
                            "sort_name",
                            models.GeneratedField(
                                db_persist=True,
                                expression=monitor.models.natural_order.SortName(models.F("name")),
                                output_field=models.TextField(db_collation="C"),
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["sort_name"],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("condition", ""), _negated=True), ("threshold__gte", 1)
                                ),
                                name="alert_rule_has_a_condition",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Alert",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("since", models.DateTimeField()),
                        ("opened_at", models.DateTimeField()),
                        ("closed_at", models.DateTimeField(null=True)),
                        ("text", models.TextField(help_text="the reason for opening it")),
                        ("closed_text", models.TextField(blank=True, help_text="the reason for closing it")),
                        (
                            "rule",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="alerts",
                                to="monitor.alertrule",
                            ),
                        ),
                        (
                            "series",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="alerts",
                                to="monitor.series",
                            ),
                        ),
                        (
                            "closed_by",
                            models.ForeignKey(
                                db_constraint=False,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to="monitor.run",
                            ),
                        ),
                        (
                            "opened_by",
                            models.ForeignKey(
                                db_constraint=False,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to="monitor.run",
                            ),
                        ),
                        (
                            "reporter",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="alerts",
                                to="monitor.reporter",
                            ),
                        ),
                        ("acknowledged_at", models.DateTimeField(null=True)),
                        (
                            "acknowledged_by",
                            models.CharField(blank=True, help_text="the user who took it on", max_length=150),
                        ),
                        (
                            "incident",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="alerts",
                                to="monitor.incident",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-opened_at", "-id"],
                        "indexes": [models.Index(fields=["-closed_at"], name="alert_latest")],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("closed_at", None)),
                                fields=("rule", "series"),
                                name="alert_open_once",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("closed_at", None), ("reporter__isnull", False)),
                                fields=("rule", "reporter"),
                                name="alert_of_reporter_open_once",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("reporter__isnull", False), ("series", None)),
                                    models.Q(("reporter", None), ("series__isnull", False)),
                                    _connector="OR",
                                ),
                                name="alert_of_a_series_or_a_reporter",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ForecastDelivery",
                    fields=[
                        (
                            "forecast",
                            models.OneToOneField(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="delivery",
                                serialize=False,
                                to="monitor.forecast",
                            ),
                        ),
                        ("delivered_at", models.DateTimeField(db_index=True)),
                    ],
                    options={
                        "verbose_name_plural": "forecast deliveries",
                    },
                ),
                migrations.CreateModel(
                    name="DayRollup",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "metric_id",
                                "bucket",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("bucket", models.DateTimeField()),
                        ("n", models.IntegerField()),
                        ("passed", models.IntegerField()),
                        ("mean", models.FloatField(null=True)),
                        ("min", models.FloatField(null=True)),
                        ("max", models.FloatField(null=True)),
                        ("stdev", models.FloatField(null=True)),
                        (
                            "sketch",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.SmallIntegerField(), null=True, size=None
                            ),
                        ),
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
                    options={
                        "ordering": ["bucket"],
                        "abstract": False,
                    },
                ),
                migrations.CreateModel(
                    name="Correction",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("time", models.DateTimeField(help_text="time of the sample: the slot of its run")),
                        ("old_value", models.FloatField(null=True)),
                        ("old_passed", models.BooleanField(null=True)),
                        ("new_value", models.FloatField(null=True)),
                        ("new_passed", models.BooleanField(null=True)),
                        (
                            "parser_version",
                            models.PositiveSmallIntegerField(
                                help_text="version of the parser that read the new value"
                            ),
                        ),
                        ("corrected_at", models.DateTimeField()),
                        (
                            "metric",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="corrections",
                                to="monitor.metric",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["corrected_at", "id"],
                        "indexes": [models.Index(fields=["metric", "time"], name="correction_metric_time")],
                    },
                ),
                migrations.CreateModel(
                    name="Hold",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("series", "Series"),
                                    ("suite", "Suite"),
                                    ("site", "Site"),
                                    ("reporter", "Reporter"),
                                ],
                                max_length=8,
                            ),
                        ),
                        ("name", models.CharField(max_length=100)),
                        (
                            "mode",
                            models.CharField(
                                choices=[("pause", "paused"), ("drain", "drained")], max_length=5
                            ),
                        ),
                        ("who", models.CharField(max_length=200)),
                        ("why", models.CharField(max_length=500)),
                        ("began_at", models.DateTimeField()),
                        (
                            "until",
                            models.DateTimeField(
                                help_text="when the hold ends by itself; empty: never", null=True
                            ),
                        ),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("ended_by", models.CharField(blank=True, max_length=200)),
                        ("ended_why", models.CharField(blank=True, max_length=500)),
                    ],
                    options={
                        "ordering": ["-began_at", "-id"],
                        "indexes": [
                            models.Index(fields=["kind", "name", "-began_at"], name="hold_history"),
                            models.Index(fields=["-began_at"], name="hold_newest"),
                            models.Index(
                                condition=models.Q(("ended_at__isnull", False)),
                                fields=["-ended_at"],
                                name="hold_ended_last",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("ended_at", None)),
                                fields=("kind", "name"),
                                name="hold_open_once",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("kind__in", ["series", "suite", "site", "reporter"])),
                                name="hold_kind_known",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("mode__in", ["pause", "drain"])), name="hold_mode_known"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("why", ""), _negated=True), models.Q(("who", ""), _negated=True)
                                ),
                                name="hold_has_who_and_why",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("until", None), ("until__gt", models.F("began_at")), _connector="OR"
                                ),
                                name="hold_ends_after_it_began",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="HourRollup",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "metric_id",
                                "bucket",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("bucket", models.DateTimeField()),
                        ("n", models.IntegerField()),
                        ("passed", models.IntegerField()),
                        ("mean", models.FloatField(null=True)),
                        ("min", models.FloatField(null=True)),
                        ("max", models.FloatField(null=True)),
                        ("stdev", models.FloatField(null=True)),
                        (
                            "sketch",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.SmallIntegerField(), null=True, size=None
                            ),
                        ),
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
                    options={
                        "ordering": ["bucket"],
                        "abstract": False,
                    },
                ),
                migrations.CreateModel(
                    name="Notification",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "event",
                            models.CharField(
                                choices=[
                                    ("opened", "Opened"),
                                    ("closed", "Closed"),
                                    ("repeated", "Repeated"),
                                ],
                                max_length=8,
                            ),
                        ),
                        ("channel", models.JSONField(help_text="the rule's channel at that time")),
                        ("due_at", models.DateTimeField(null=True)),
                        ("attempts", models.PositiveSmallIntegerField(default=0)),
                        ("sent_at", models.DateTimeField(null=True)),
                        ("error", models.TextField(blank=True, help_text="the error of the last attempt")),
                        (
                            "withheld",
                            models.CharField(blank=True, help_text="why it is not sent", max_length=300),
                        ),
                        (
                            "alert",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="notifications",
                                to="monitor.alert",
                            ),
                        ),
                        (
                            "incident",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="notifications",
                                to="monitor.incident",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-id"],
                        "indexes": [
                            models.Index(
                                condition=models.Q(("due_at__isnull", False)),
                                fields=["due_at"],
                                name="notification_due",
                            )
                        ],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("alert", None), ("incident__isnull", False)),
                                    models.Q(("alert__isnull", False), ("incident", None)),
                                    _connector="OR",
                                ),
                                name="notification_of_an_alert_or_an_incident",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Outcome",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("job", models.CharField(max_length=200)),
                        ("passed", models.BooleanField()),
                        (
                            "seconds",
                            models.FloatField(help_text="how long it took to pass or to fail", null=True),
                        ),
                        ("started_at", models.DateTimeField()),
                        ("ended_at", models.DateTimeField()),
                        ("received_at", models.DateTimeField()),
                        (
                            "consumer",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="outcomes",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "forecast",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="outcomes",
                                to="monitor.forecast",
                            ),
                        ),
                        (
                            "metric",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="outcomes",
                                to="monitor.metric",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-received_at"],
                        "indexes": [models.Index(fields=["metric", "received_at"], name="outcome_history")],
                        "constraints": [
                            models.UniqueConstraint(fields=("consumer", "job"), name="outcome_job_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="PendingChange",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("hour", models.DateTimeField()),
                        ("due_at", models.DateTimeField(null=True)),
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
                        "verbose_name_plural": "pending changes",
                        "ordering": ["id"],
                    },
                ),
                migrations.CreateModel(
                    name="Recheck",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("due_at", models.DateTimeField()),
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
                        "indexes": [models.Index(fields=["due_at"], name="recheck_due")],
                    },
                ),
                migrations.CreateModel(
                    name="Binding",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("role", models.CharField(max_length=50)),
                        ("position", models.PositiveSmallIntegerField()),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="bindings",
                                to="monitor.series",
                            ),
                        ),
                        (
                            "resource",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="bindings",
                                to="monitor.resource",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["series", "role", "position"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("series", "role", "position"), name="binding_position_once"
                            ),
                            models.UniqueConstraint(
                                fields=("series", "role", "resource"), name="binding_resource_once"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="RetentionCutoff",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("reports", "raw reports"),
                                    ("samples", "samples"),
                                    ("hourly", "hourly rollups"),
                                    ("daily", "daily rollups"),
                                ],
                                max_length=7,
                            ),
                        ),
                        ("kept_from", models.DateTimeField()),
                        ("gone_before", models.DateTimeField(null=True)),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="retention_cutoffs",
                                to="monitor.series",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["series_id", "kind"],
                        "constraints": [
                            models.UniqueConstraint(fields=("series", "kind"), name="retention_cutoff_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Sample",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "metric_id",
                                "time",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("time", models.DateTimeField()),
                        ("known_at", models.DateTimeField()),
                        ("value", models.FloatField()),
                        ("passed", models.BooleanField()),
                        (
                            "metric",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="samples",
                                to="monitor.metric",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["time"],
                        "indexes": [
                            django.contrib.postgres.indexes.BrinIndex(
                                fields=["time"], name="sample_time_brin"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="MaintenanceWindow",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.SlugField(unique=True)),
                        (
                            "title",
                            models.CharField(
                                blank=True, help_text="displayed title; empty: the name", max_length=200
                            ),
                        ),
                        (
                            "starts_at",
                            models.DateTimeField(
                                blank=True,
                                help_text="start of a single window; with a schedule, no window starts earlier",
                                null=True,
                            ),
                        ),
                        (
                            "ends_at",
                            models.DateTimeField(
                                blank=True,
                                help_text="end of a single window; with a schedule, no window starts later",
                                null=True,
                            ),
                        ),
                        (
                            "schedule",
                            models.CharField(
                                blank=True,
                                help_text="five-field cron expression for the starts of recurring windows; empty: a single window",
                                max_length=200,
                            ),
                        ),
                        (
                            "timezone",
                            models.CharField(
                                default="UTC",
                                help_text="time zone of the schedule, an IANA name",
                                max_length=50,
                            ),
                        ),
                        (
                            "duration_seconds",
                            models.PositiveIntegerField(
                                blank=True, help_text="duration of each recurring window", null=True
                            ),
                        ),
                        (
                            "sites",
                            models.ManyToManyField(
                                blank=True,
                                help_text="none: every site",
                                related_name="maintenance_windows",
                                to="monitor.site",
                            ),
                        ),
                        (
                            "source",
                            models.SlugField(
                                blank=True,
                                db_index=False,
                                editable=False,
                                help_text="the feed that announced the window; empty: a grid file or a user",
                            ),
                        ),
                        (
                            "uid",
                            models.CharField(
                                blank=True,
                                editable=False,
                                help_text="identifies it in the feed",
                                max_length=300,
                            ),
                        ),
                        (
                            "url",
                            models.CharField(
                                blank=True, editable=False, help_text="the announcement", max_length=500
                            ),
                        ),
                        (
                            "sort_name",
                            models.GeneratedField(
                                db_persist=True,
                                expression=monitor.models.natural_order.SortName(models.F("name")),
                                output_field=models.TextField(db_collation="C"),
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["sort_name"],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("ends_at__gt", models.F("starts_at"))),
                                name="maintenance_window_ends_after_it_starts",
                                violation_error_message="Expected an end after the start.",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(
                                        ("duration_seconds", None),
                                        ("ends_at__isnull", False),
                                        ("schedule", ""),
                                        ("starts_at__isnull", False),
                                    ),
                                    models.Q(
                                        models.Q(("schedule", ""), _negated=True),
                                        ("duration_seconds__gt", 0),
                                        ("duration_seconds__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="maintenance_window_once_or_recurring",
                                violation_error_message="Expected a start and an end, or a schedule and a duration.",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("source", ""), _negated=True),
                                fields=("source", "uid"),
                                name="maintenance_window_once_in_its_source",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DayScore",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("day", models.DateField()),
                        ("metric", models.CharField(max_length=200)),
                        ("unit", models.CharField(max_length=50)),
                        ("method", models.CharField(max_length=50)),
                        ("n", models.PositiveIntegerField()),
                        ("absolute_error", models.FloatField()),
                        ("last_value_n", models.PositiveIntegerField()),
                        ("last_value_error", models.FloatField()),
                        (
                            "compared_error",
                            models.FloatField(help_text="absolute_error where last_value_error is known"),
                        ),
                        ("actual", models.FloatField()),
                        ("interval_n", models.PositiveIntegerField()),
                        ("within_80", models.PositiveIntegerField()),
                        ("within_90", models.PositiveIntegerField()),
                        (
                            "site",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.site",
                            ),
                        ),
                        (
                            "suite",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.suite",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-day", "id"],
                        "indexes": [models.Index(fields=["suite", "day"], name="dayscore_of_suite")],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("metric", "day", "suite", "site", "method", "unit"),
                                name="dayscore_once",
                                nulls_distinct=False,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Transition",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "source",
                            models.CharField(
                                choices=[
                                    ("expected", "Expected"),
                                    ("claimed", "Claimed"),
                                    ("running", "Running"),
                                    ("passed", "Passed"),
                                    ("failed", "Failed"),
                                    ("broken", "Broken"),
                                    ("no_data", "No Data"),
                                    ("timed_out", "Timed Out"),
                                    ("skipped", "Skipped"),
                                    ("missed", "Missed"),
                                    ("lost", "Lost"),
                                ],
                                max_length=10,
                            ),
                        ),
                        (
                            "target",
                            models.CharField(
                                choices=[
                                    ("expected", "Expected"),
                                    ("claimed", "Claimed"),
                                    ("running", "Running"),
                                    ("passed", "Passed"),
                                    ("failed", "Failed"),
                                    ("broken", "Broken"),
                                    ("no_data", "No Data"),
                                    ("timed_out", "Timed Out"),
                                    ("skipped", "Skipped"),
                                    ("missed", "Missed"),
                                    ("lost", "Lost"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("at", models.DateTimeField(help_text="time by the database's clock")),
                        ("cause", models.CharField(max_length=200)),
                        (
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="transitions",
                                to="monitor.run",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["id"],
                    },
                ),
                migrations.CreateModel(
                    name="Usage",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "began_at",
                            models.DateTimeField(
                                help_text="start of the run, which decides the day it counts for"
                            ),
                        ),
                        (
                            "bytes",
                            models.PositiveBigIntegerField(
                                help_text="sent and received by successful copies", null=True
                            ),
                        ),
                        (
                            "cpu_seconds",
                            models.FloatField(
                                help_text="processors times run time of the batch jobs", null=True
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="usage",
                                to="monitor.run",
                            ),
                        ),
                        (
                            "site",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="usage",
                                to="monitor.site",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "usage",
                        "ordering": ["-began_at"],
                        "indexes": [
                            models.Index(
                                fields=["site", "began_at"],
                                include=("bytes", "cpu_seconds"),
                                name="usage_site_day",
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("run", "site"), name="usage_run_site_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="CurrentSegment",
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
                        ("setup", models.CharField(max_length=32)),
                        ("application", models.CharField(max_length=200)),
                        ("path", models.TextField()),
                        ("resources", models.TextField()),
                        (
                            "segment",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.segment",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "current segments",
                        "indexes": [
                            django.contrib.postgres.indexes.HashIndex(fields=["path"], name="current_path"),
                            django.contrib.postgres.indexes.HashIndex(
                                fields=["resources"], name="current_resources"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SuccessState",
                    fields=[
                        (
                            "series",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="success_state",
                                serialize=False,
                                to="monitor.series",
                            ),
                        ),
                        ("state", models.BinaryField(null=True)),
                        ("versions", models.BinaryField(null=True)),
                        ("used_until", models.DateTimeField(null=True)),
                        ("used", models.BinaryField(null=True)),
                        ("is_behind", models.BooleanField(default=True)),
                        ("n", models.PositiveIntegerField(default=0)),
                        ("probability", models.FloatField(null=True)),
                        ("expected_seconds", models.FloatField(null=True)),
                        (
                            "quantiles",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.FloatField(), null=True, size=None
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(("is_behind", True)),
                                fields=["series"],
                                name="successstate_behind",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DirtyHour",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("hour", models.DateTimeField()),
                        ("gathered", models.BooleanField(db_default=False)),
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
                        "indexes": [
                            models.Index(fields=["series", "hour"], name="dirtyhour_series_hour"),
                            models.Index(
                                condition=models.Q(("gathered", False)),
                                fields=["series", "hour"],
                                name="dirtyhour_new",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ForecastState",
                    fields=[
                        (
                            "metric",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="forecast_state",
                                serialize=False,
                                to="monitor.metric",
                            ),
                        ),
                        ("state", models.BinaryField(null=True)),
                        ("versions", models.BinaryField(null=True)),
                        ("used_until", models.DateTimeField(null=True)),
                        ("used", models.BinaryField(null=True)),
                        ("is_behind", models.BooleanField(default=True)),
                        (
                            "is_new",
                            models.BooleanField(
                                db_default=False, help_text="its predictors have not been chosen yet"
                            ),
                        ),
                        (
                            "is_requested",
                            models.BooleanField(
                                db_default=False, help_text="a client asked before it was computed"
                            ),
                        ),
                        ("n", models.PositiveIntegerField(default=0)),
                        ("prior", models.BinaryField(null=True)),
                        ("last_time", models.DateTimeField(null=True)),
                        ("last_value", models.FloatField(null=True)),
                        ("median", models.FloatField(null=True)),
                        ("stale_at", models.DateTimeField(null=True)),
                        ("explanation", models.JSONField(null=True)),
                        ("record_n", models.PositiveSmallIntegerField(default=0)),
                        ("mean_absolute_error", models.FloatField(null=True)),
                        ("relative_error", models.FloatField(null=True)),
                        (
                            "mean_absolute_scaled_error",
                            models.FloatField(help_text="relative to the baseline", null=True),
                        ),
                        (
                            "winkler_score",
                            models.FloatField(help_text="of the interval of the forecast", null=True),
                        ),
                        (
                            "less",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.SmallIntegerField(), default=list, size=None
                            ),
                        ),
                        (
                            "most",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.SmallIntegerField(), default=list, size=None
                            ),
                        ),
                        (
                            "forecast",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="monitor.forecast",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(("is_behind", True)),
                                fields=["metric"],
                                name="forecaststate_behind",
                            ),
                            models.Index(
                                condition=models.Q(("is_new", True)),
                                fields=["metric"],
                                name="forecaststate_new",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ForecastPredictor",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=200)),
                        ("n", models.PositiveIntegerField(default=0)),
                        ("gain", models.FloatField(null=True)),
                        ("p_value", models.FloatField(null=True)),
                        ("is_kept", models.BooleanField(null=True)),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.series",
                            ),
                        ),
                        (
                            "metric",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="predictors",
                                to="monitor.metric",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["metric", "id"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("metric", "series", "name"), name="forecastpredictor_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ReporterStatus",
                    fields=[
                        (
                            "reporter",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="status",
                                serialize=False,
                                to="monitor.reporter",
                            ),
                        ),
                        (
                            "seen_at",
                            models.DateTimeField(
                                help_text="time of the last exchange, by the server's clock"
                            ),
                        ),
                        (
                            "started_at",
                            models.DateTimeField(help_text="when the agent started, by its own clock"),
                        ),
                        ("hostname", models.CharField(max_length=253)),
                        (
                            "archive_sha256",
                            models.CharField(blank=True, help_text="identifies the version", max_length=64),
                        ),
                        ("version", models.CharField(blank=True, max_length=50)),
                        ("python", models.CharField(blank=True, max_length=50)),
                        (
                            "assignment_version",
                            models.PositiveBigIntegerField(default=0, help_text="in force at the site"),
                        ),
                        (
                            "assignment_error",
                            models.TextField(blank=True, help_text="why the newest assignment was refused"),
                        ),
                        (
                            "policy_status",
                            models.CharField(
                                choices=[
                                    ("absent", "no policy: everything assigned may run"),
                                    ("in_force", "in force"),
                                    ("unreadable", "unreadable: nothing runs"),
                                ],
                                default="absent",
                                max_length=10,
                            ),
                        ),
                        ("policy_sha256", models.CharField(blank=True, max_length=64)),
                        ("policy_error", models.TextField(blank=True)),
                        (
                            "policy_summary",
                            models.JSONField(
                                default=dict, help_text="what the policy says, as far as it is disclosed"
                            ),
                        ),
                        ("pending_approvals", models.PositiveIntegerField(default=0)),
                        ("spool_records", models.PositiveBigIntegerField(default=0)),
                        ("spool_bytes", models.PositiveBigIntegerField(default=0)),
                        ("spool_oldest_at", models.DateTimeField(null=True)),
                        (
                            "dropped_records",
                            models.PositiveBigIntegerField(default=0, help_text="dropped by the agent, ever"),
                        ),
                        ("in_flight", models.PositiveIntegerField(default=0)),
                        (
                            "clock_offset_seconds",
                            models.FloatField(help_text="server's clock minus the agent's", null=True),
                        ),
                        (
                            "clock_bound_seconds",
                            models.FloatField(help_text="the largest error of the offset", null=True),
                        ),
                        (
                            "messages",
                            models.JSONField(
                                default=list, help_text="the newest messages of the agent, oldest first"
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "reporter statuses",
                    },
                ),
                migrations.CreateModel(
                    name="Chain",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uuid", models.UUIDField(unique=True)),
                        ("first_seen_at", models.DateTimeField()),
                        ("declared_at", models.DateTimeField(null=True)),
                        ("declared_next", models.PositiveBigIntegerField(default=0)),
                        ("declared_head", models.CharField(blank=True, max_length=64)),
                        (
                            "reporter",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="chains",
                                to="monitor.reporter",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["first_seen_at", "pk"],
                    },
                ),
                migrations.CreateModel(
                    name="ReporterKey",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "method",
                            models.CharField(
                                help_text="how it signs, a module of reporters.remote.signing", max_length=20
                            ),
                        ),
                        ("public_key", models.TextField(help_text="as the method writes it")),
                        (
                            "fingerprint",
                            models.CharField(
                                help_text="SHA-256 of the public key, in hex", max_length=64, unique=True
                            ),
                        ),
                        (
                            "hostname",
                            models.CharField(blank=True, help_text="the host that enrolled", max_length=253),
                        ),
                        ("enrolled_at", models.DateTimeField()),
                        ("revoked_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "revoked_by",
                            models.CharField(
                                blank=True, help_text="user name, or the reason", max_length=150
                            ),
                        ),
                        (
                            "reporter",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="keys",
                                to="monitor.reporter",
                            ),
                        ),
                        (
                            "paced_until",
                            models.DateTimeField(
                                blank=True,
                                help_text="when its exchanges would have been made at the pace that is allowed",
                                null=True,
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-enrolled_at"],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("revoked_at", None)),
                                fields=("reporter",),
                                name="reporter_has_one_active_key",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="EnrolmentCode",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("sha256", models.CharField(max_length=64, unique=True)),
                        ("created_at", models.DateTimeField()),
                        ("expires_at", models.DateTimeField()),
                        ("used_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "created_by",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "reporter",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="enrolment_codes",
                                to="monitor.reporter",
                            ),
                        ),
                        (
                            "key",
                            models.ForeignKey(
                                help_text="the key that was enrolled with it",
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                to="monitor.reporterkey",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-created_at"],
                    },
                ),
                migrations.CreateModel(
                    name="ChainRecord",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "chain_id",
                                "sequence",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("sequence", models.PositiveBigIntegerField()),
                        ("kind", models.CharField(max_length=10)),
                        ("hash", models.BinaryField(max_length=32)),
                        (
                            "disposition",
                            models.PositiveSmallIntegerField(
                                choices=[
                                    (1, "stored: the first report of its run"),
                                    (2, "duplicate: the same report was stored before"),
                                    (3, "conflict: another report of the run was stored before; kept beside"),
                                    (4, "refused: the depot can never store it"),
                                    (5, "a note of the reporter: no report"),
                                ]
                            ),
                        ),
                        ("run", models.UUIDField(null=True)),
                        ("slot", models.DateTimeField(null=True)),
                        ("received_at", models.DateTimeField()),
                        (
                            "text",
                            models.TextField(
                                blank=True, help_text="the body of a note, or why a report was refused"
                            ),
                        ),
                        (
                            "chain",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="records",
                                to="monitor.chain",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["chain", "sequence"],
                        "indexes": [
                            django.contrib.postgres.indexes.BrinIndex(
                                fields=["received_at"], name="chainrecord_received_brin"
                            ),
                            models.Index(
                                condition=models.Q(("kind", "dropped")),
                                fields=["received_at"],
                                name="chainrecord_dropped",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ReporterAssignment",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("version", models.PositiveBigIntegerField(help_text="rises with every change")),
                        ("document", models.TextField(help_text="the JSON that is signed and sent")),
                        (
                            "content_sha256",
                            models.CharField(
                                help_text="of the document without its version and its time", max_length=64
                            ),
                        ),
                        ("issued_at", models.DateTimeField()),
                        (
                            "reporter",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="assignments",
                                to="monitor.reporter",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-version"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("reporter", "version"), name="assignment_version_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ConflictingReport",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("run", models.UUIDField()),
                        ("slot", models.DateTimeField()),
                        (
                            "reporter",
                            models.CharField(help_text="the reporter that the report names", max_length=200),
                        ),
                        ("received_at", models.DateTimeField()),
                        ("sha256", models.BinaryField(help_text="of the body", max_length=32)),
                        (
                            "packing",
                            models.PositiveSmallIntegerField(
                                help_text="compression format of the body (monitor.core.compression)"
                            ),
                        ),
                        ("packed", models.BinaryField()),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="conflicting_reports",
                                to="monitor.series",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-received_at"],
                        "constraints": [
                            models.UniqueConstraint(fields=("run", "sha256"), name="conflicting_report_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ConflictCount",
                    fields=[
                        (
                            "reporter",
                            models.CharField(
                                help_text="the reporter that they name",
                                max_length=200,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("total", models.PositiveBigIntegerField()),
                        ("last_at", models.DateTimeField(help_text="when the last one was received")),
                    ],
                    options={
                        "ordering": ["reporter"],
                    },
                ),
                migrations.CreateModel(
                    name="PingKey",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "name",
                            models.CharField(
                                blank=True, help_text="the program that uses it", max_length=100
                            ),
                        ),
                        (
                            "prefix",
                            models.CharField(help_text="the first characters of the key", max_length=20),
                        ),
                        ("sha256", models.CharField(max_length=64, unique=True)),
                        ("created_at", models.DateTimeField()),
                        ("created_by", models.CharField(max_length=150)),
                        (
                            "used_at",
                            models.DateTimeField(help_text="time of the last ping, to the minute", null=True),
                        ),
                        ("revoked_at", models.DateTimeField(null=True)),
                        ("revoked_by", models.CharField(blank=True, max_length=150)),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="ping_keys",
                                to="monitor.series",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["series", "-created_at"],
                    },
                ),
                migrations.CreateModel(
                    name="ReportedStart",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "rid",
                            models.CharField(
                                blank=True, help_text="the caller's id of the run", max_length=100
                            ),
                        ),
                        ("slot", models.DateTimeField()),
                        (
                            "started_at",
                            models.DateTimeField(help_text="empty if no start was announced", null=True),
                        ),
                        ("received_at", models.DateTimeField()),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="reported_starts",
                                to="monitor.series",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-received_at"],
                        "constraints": [
                            models.UniqueConstraint(fields=("series", "rid"), name="reported_start_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="FormerReporter",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "until",
                            models.DateTimeField(
                                help_text="time of the last change, by the database's clock"
                            ),
                        ),
                        (
                            "reporter",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="former_series",
                                to="monitor.reporter",
                            ),
                        ),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="former_reporters",
                                to="monitor.series",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("series", "reporter"), name="former_reporter_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="EnrolmentAttempt",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("at", models.DateTimeField(db_index=True)),
                        (
                            "address",
                            models.CharField(
                                help_text="of the client: an IPv4 address, or an IPv6 /64", max_length=50
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-at"],
                    },
                ),
                migrations.CreateModel(
                    name="Deployment",
                    fields=[
                        (
                            "reporter",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="deployment",
                                serialize=False,
                                to="monitor.reporter",
                            ),
                        ),
                        (
                            "shell",
                            models.JSONField(help_text='e.g. {"kind": "ssh", "host": "login.example.org"}'),
                        ),
                        (
                            "state_directory",
                            models.CharField(help_text="absolute path at the site", max_length=1000),
                        ),
                        (
                            "python",
                            models.CharField(
                                help_text="absolute path of the interpreter at the site", max_length=1000
                            ),
                        ),
                        (
                            "archive_sha256",
                            models.CharField(help_text="of the installed version", max_length=64),
                        ),
                        ("installed_at", models.DateTimeField()),
                    ],
                    options={
                        "ordering": ["reporter__name"],
                    },
                ),
                migrations.CreateModel(
                    name="FailureSignature",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=50, unique=True)),
                        ("title", models.CharField(max_length=200)),
                        (
                            "category",
                            models.CharField(
                                choices=[
                                    ("user", "User"),
                                    ("credential", "Credential"),
                                    ("middleware", "Middleware"),
                                    ("batch", "Batch"),
                                    ("network", "Network"),
                                    ("resource", "Resource"),
                                    ("storage", "Storage"),
                                    ("probe", "Probe"),
                                    ("unknown", "Unknown"),
                                ],
                                max_length=10,
                            ),
                        ),
                        (
                            "severity",
                            models.CharField(
                                choices=[("minor", "Minor"), ("major", "Major"), ("critical", "Critical")],
                                max_length=8,
                            ),
                        ),
                        (
                            "counts_against_site",
                            models.BooleanField(help_text="whether the adjusted success rate counts it"),
                        ),
                        ("help", models.TextField(blank=True, help_text="what usually removes the cause")),
                        (
                            "origin",
                            models.CharField(
                                choices=[
                                    ("shipped", "Shipped"),
                                    ("grid file", "Grid File"),
                                    ("page", "Page"),
                                    ("withdrawn", "Withdrawn"),
                                ],
                                default="shipped",
                                max_length=9,
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["name"],
                    },
                ),
                migrations.CreateModel(
                    name="JudgedHistory",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("digest", models.CharField(help_text="of the signatures", max_length=64)),
                        ("rejudge_before", models.DateTimeField(null=True)),
                    ],
                    options={
                        "verbose_name_plural": "judged history",
                    },
                ),
                migrations.CreateModel(
                    name="OwnSignature",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=50, unique=True)),
                        ("title", models.CharField(max_length=200)),
                        (
                            "category",
                            models.CharField(
                                choices=[
                                    ("user", "User"),
                                    ("credential", "Credential"),
                                    ("middleware", "Middleware"),
                                    ("batch", "Batch"),
                                    ("network", "Network"),
                                    ("resource", "Resource"),
                                    ("storage", "Storage"),
                                    ("probe", "Probe"),
                                    ("unknown", "Unknown"),
                                ],
                                max_length=10,
                            ),
                        ),
                        (
                            "severity",
                            models.CharField(
                                choices=[("minor", "Minor"), ("major", "Major"), ("critical", "Critical")],
                                max_length=8,
                            ),
                        ),
                        ("patterns", models.JSONField()),
                        ("help", models.TextField(blank=True, max_length=2000)),
                        ("counts_against_site", models.BooleanField(null=True)),
                        ("stages", models.JSONField(default=list)),
                        ("tools", models.JSONField(default=list)),
                        ("precedence", models.SmallIntegerField(default=0)),
                        (
                            "origin",
                            models.CharField(
                                choices=[
                                    ("shipped", "Shipped"),
                                    ("grid file", "Grid File"),
                                    ("page", "Page"),
                                    ("withdrawn", "Withdrawn"),
                                ],
                                default="grid file",
                                max_length=9,
                            ),
                        ),
                        ("version", models.PositiveIntegerField(default=1)),
                        ("changed_at", models.DateTimeField(auto_now=True)),
                        ("changed_by", models.CharField(blank=True, max_length=150)),
                    ],
                    options={
                        "ordering": ["name"],
                        "permissions": [
                            ("manage_signatures", "Can accept, edit and withdraw signatures of failures")
                        ],
                        "default_permissions": (),
                    },
                ),
                migrations.CreateModel(
                    name="SignatureChange",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("signature", models.CharField(max_length=50)),
                        (
                            "action",
                            models.CharField(
                                choices=[
                                    ("added", "Added"),
                                    ("changed", "Changed"),
                                    ("withdrawn", "Withdrawn"),
                                ],
                                max_length=9,
                            ),
                        ),
                        ("at", models.DateTimeField()),
                        (
                            "user",
                            models.CharField(blank=True, help_text="empty: a grid file", max_length=150),
                        ),
                        ("before", models.JSONField(null=True)),
                        ("after", models.JSONField(null=True)),
                    ],
                    options={
                        "ordering": ["-at", "-id"],
                    },
                ),
                migrations.CreateModel(
                    name="Attribution",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("kind", models.CharField(max_length=11)),
                        ("name", models.CharField(max_length=201)),
                        ("probability", models.FloatField()),
                        ("failed", models.PositiveIntegerField()),
                        ("total", models.PositiveIntegerField()),
                        ("since", models.DateTimeField()),
                        ("latest_at", models.DateTimeField()),
                        ("decided_at", models.DateTimeField(help_text="when it was first found")),
                        ("ended_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "ordering": ["-decided_at", "-id"],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("ended_at", None)),
                                fields=("kind", "name"),
                                name="attribution_open_once",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AttributedRun",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("run", models.UUIDField()),
                        ("slot", models.DateTimeField()),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.series",
                            ),
                        ),
                        (
                            "attribution",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="runs",
                                to="monitor.attribution",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("run", "attribution"), name="attributed_run_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Incident",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("kind", models.CharField(blank=True, max_length=11)),
                        ("name", models.CharField(blank=True, max_length=201)),
                        ("condition", models.CharField(blank=True, max_length=50)),
                        ("headline", models.CharField(blank=True, max_length=200)),
                        ("since", models.DateTimeField()),
                        ("opened_at", models.DateTimeField()),
                        ("acknowledged_at", models.DateTimeField(null=True)),
                        ("acknowledged_by", models.CharField(blank=True, max_length=150)),
                        ("assigned_to", models.CharField(blank=True, max_length=150)),
                        ("is_held", models.BooleanField(default=False)),
                        ("silenced_until", models.DateTimeField(null=True)),
                        ("silenced_by", models.CharField(blank=True, max_length=150)),
                        ("resolved_at", models.DateTimeField(null=True)),
                        (
                            "resolved_by",
                            models.CharField(
                                blank=True, help_text="the user; empty: the service", max_length=150
                            ),
                        ),
                        ("resolution", models.TextField(blank=True)),
                        (
                            "signature",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="monitor.failuresignature",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-opened_at", "-id"],
                        "indexes": [models.Index(fields=["signature", "name"], name="incident_same_cause")],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(
                                    ("resolved_at", None), models.Q(("kind__in", ["", "at"]), _negated=True)
                                ),
                                fields=("kind", "name", "condition"),
                                name="incident_of_a_part_open_once",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("kind__in", ["", "at"]), ("resolved_at", None)),
                                fields=("kind", "name", "signature"),
                                name="incident_of_a_cause_open_once",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="IncidentEvent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("at", models.DateTimeField()),
                        (
                            "action",
                            models.CharField(
                                choices=[
                                    ("opened", "Opened"),
                                    ("affected", "Affected"),
                                    ("alerted", "Alerted"),
                                    ("recovered", "Recovered"),
                                    ("acknowledged", "Acknowledged"),
                                    ("assigned", "Assigned"),
                                    ("commented", "Commented"),
                                    ("silenced", "Silenced"),
                                    ("resolved", "Resolved"),
                                ],
                                max_length=12,
                            ),
                        ),
                        ("user", models.CharField(blank=True, max_length=150)),
                        ("text", models.TextField(blank=True)),
                        (
                            "incident",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="events",
                                to="monitor.incident",
                            ),
                        ),
                        (
                            "series",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.series",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["at", "id"],
                    },
                ),
                migrations.CreateModel(
                    name="IncidentSeries",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("since", models.DateTimeField()),
                        ("until", models.DateTimeField(null=True)),
                        (
                            "incident",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="affected",
                                to="monitor.incident",
                            ),
                        ),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.series",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["since", "id"],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("until", None)),
                                fields=("series",),
                                name="series_in_one_open_incident",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="MaintenanceChange",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("window", models.SlugField(help_text="name of the maintenance window")),
                        ("source", models.SlugField(help_text="name of the feed; declared: a user")),
                        (
                            "action",
                            models.CharField(
                                choices=[
                                    ("added", "Added"),
                                    ("changed", "Changed"),
                                    ("shortened", "Shortened"),
                                    ("removed", "Removed"),
                                    ("declared", "Declared"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("at", models.DateTimeField()),
                        ("who", models.CharField(max_length=200)),
                        (
                            "before",
                            models.TextField(
                                blank=True, help_text="title, times and sites before the change"
                            ),
                        ),
                        (
                            "after",
                            models.TextField(blank=True, help_text="title, times and sites after the change"),
                        ),
                        ("why", models.CharField(max_length=500)),
                    ],
                    options={
                        "ordering": ["-at", "-id"],
                    },
                ),
                migrations.CreateModel(
                    name="AvailabilityProfile",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.SlugField(unique=True)),
                        (
                            "title",
                            models.CharField(
                                blank=True, help_text="displayed title; empty: the name", max_length=200
                            ),
                        ),
                        (
                            "valid_from",
                            models.DateField(
                                blank=True,
                                help_text="first day of its present version; empty: the day of the change",
                                null=True,
                            ),
                        ),
                        ("needs", models.CharField(default="all", max_length=3)),
                        ("include", models.JSONField(blank=True, null=True)),
                        ("exclude", models.JSONField(blank=True, null=True)),
                        ("services", models.JSONField(blank=True, default=dict)),
                        (
                            "sites",
                            models.ManyToManyField(
                                blank=True, related_name="availability_profiles", to="monitor.site"
                            ),
                        ),
                        (
                            "sort_name",
                            models.GeneratedField(
                                db_persist=True,
                                expression=monitor.models.natural_order.SortName(models.F("name")),
                                output_field=models.TextField(db_collation="C"),
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["sort_name"],
                    },
                ),
                migrations.CreateModel(
                    name="DirtyDay",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("first", models.DateField()),
                        ("last", models.DateField()),
                        (
                            "series",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.series",
                            ),
                        ),
                        (
                            "site",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.site",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["id"],
                    },
                ),
                migrations.CreateModel(
                    name="ProfileVersion",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("profile", models.SlugField()),
                        ("number", models.PositiveIntegerField()),
                        ("title", models.CharField(blank=True, max_length=200)),
                        ("valid_from", models.DateField()),
                        ("created_at", models.DateTimeField()),
                        (
                            "site_keys",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.BigIntegerField(), default=list, size=None
                            ),
                        ),
                        ("rules", models.JSONField(null=True)),
                    ],
                    options={
                        "ordering": ["profile", "number"],
                        "constraints": [
                            models.UniqueConstraint(fields=("profile", "number"), name="profile_version_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Recomputation",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("requester", models.CharField(max_length=200)),
                        ("reason", models.CharField(max_length=500)),
                        ("at", models.DateTimeField()),
                        ("first", models.DateField()),
                        ("last", models.DateField()),
                        (
                            "version",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="monitor.profileversion",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-at", "-id"],
                    },
                ),
                migrations.CreateModel(
                    name="RecomputedPeriod",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("site_name", models.SlugField()),
                        ("day", models.DateField()),
                        ("is_month", models.BooleanField()),
                        (
                            "before",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.IntegerField(), null=True, size=None
                            ),
                        ),
                        (
                            "after",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.IntegerField(), size=None
                            ),
                        ),
                        ("before_version", models.CharField(blank=True, max_length=70)),
                        ("after_version", models.CharField(blank=True, max_length=70)),
                        (
                            "recomputation",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="periods",
                                to="monitor.recomputation",
                            ),
                        ),
                        (
                            "site",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to="monitor.site",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["site_name", "-is_month", "day"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("recomputation", "site_name", "day", "is_month"),
                                name="recomputed_period_once",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SiteDay",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("service", models.CharField(blank=True, max_length=100)),
                        ("up_seconds", models.IntegerField(default=0)),
                        ("unknown_seconds", models.IntegerField(default=0)),
                        ("scheduled_seconds", models.IntegerField(default=0)),
                        ("down_seconds", models.IntegerField(default=0)),
                        ("day", models.DateField()),
                        ("until", models.DateTimeField(null=True)),
                        ("computed_at", models.DateTimeField(null=True)),
                        ("is_dirty", models.BooleanField(default=True)),
                        (
                            "site",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.site",
                            ),
                        ),
                        (
                            "version",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="monitor.profileversion",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["day", "site_id", "service"],
                        "indexes": [
                            models.Index(fields=["day"], name="site_day_by_day"),
                            models.Index(
                                condition=models.Q(("is_dirty", True), ("service", "")),
                                fields=["day"],
                                name="site_day_dirty",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("site", "day", "service"), name="site_day_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SiteMonth",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("service", models.CharField(blank=True, max_length=100)),
                        ("up_seconds", models.IntegerField(default=0)),
                        ("unknown_seconds", models.IntegerField(default=0)),
                        ("scheduled_seconds", models.IntegerField(default=0)),
                        ("down_seconds", models.IntegerField(default=0)),
                        ("month", models.DateField()),
                        ("created_at", models.DateTimeField()),
                        ("published_at", models.DateTimeField(null=True)),
                        ("has_late_data", models.BooleanField(default=False)),
                        (
                            "site",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="monitor.site",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["month", "site_id", "service"],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("month", "site", "service"), name="site_month_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="EndedRun",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("subscriber", models.CharField(max_length=20)),
                        ("run", models.UUIDField()),
                        ("slot", models.DateTimeField()),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("expected", "Expected"),
                                    ("claimed", "Claimed"),
                                    ("running", "Running"),
                                    ("passed", "Passed"),
                                    ("failed", "Failed"),
                                    ("broken", "Broken"),
                                    ("no_data", "No Data"),
                                    ("timed_out", "Timed Out"),
                                    ("skipped", "Skipped"),
                                    ("missed", "Missed"),
                                    ("lost", "Lost"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("at", models.DateTimeField(help_text="time by the database's clock")),
                    ],
                    options={
                        "ordering": ["id"],
                    },
                ),
                migrations.CreateModel(
                    name="RunSubscriber",
                    fields=[
                        ("name", models.CharField(max_length=20, primary_key=True, serialize=False)),
                        ("paused_until", models.DateTimeField(null=True)),
                    ],
                    options={
                        "ordering": ["name"],
                    },
                ),
                migrations.CreateModel(
                    name="Webhook",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.SlugField(unique=True)),
                        ("url", models.CharField(max_length=2000)),
                        ("secret_variable", models.CharField(blank=True, max_length=100)),
                        (
                            "events",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.CharField(
                                    choices=[
                                        ("run.ended", "Run Ended"),
                                        ("site.down", "Site Down"),
                                        ("site.up", "Site Up"),
                                        ("webhook.ping", "Ping"),
                                    ],
                                    max_length=20,
                                ),
                                size=None,
                            ),
                        ),
                        ("enabled", models.BooleanField(default=True)),
                        ("created_at", models.DateTimeField()),
                        ("created_by", models.CharField(max_length=150)),
                        ("sites", models.ManyToManyField(blank=True, related_name="+", to="monitor.site")),
                        ("suites", models.ManyToManyField(blank=True, related_name="+", to="monitor.suite")),
                        (
                            "sort_name",
                            models.GeneratedField(
                                db_persist=True,
                                expression=monitor.models.natural_order.SortName(models.F("name")),
                                output_field=models.TextField(db_collation="C"),
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["sort_name"],
                        "permissions": [
                            ("manage_webhooks", "Can define webhooks and repeat their deliveries")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="WebhookDelivery",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("message", models.CharField(max_length=100)),
                        (
                            "event",
                            models.CharField(
                                choices=[
                                    ("run.ended", "Run Ended"),
                                    ("site.down", "Site Down"),
                                    ("site.up", "Site Up"),
                                    ("webhook.ping", "Ping"),
                                ],
                                max_length=20,
                            ),
                        ),
                        ("subject", models.CharField(help_text="the series or the site", max_length=100)),
                        ("body", models.TextField()),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("pending", "Pending"),
                                    ("delivered", "Delivered"),
                                    ("dead", "Dead"),
                                ],
                                default="pending",
                                max_length=10,
                            ),
                        ),
                        ("created_at", models.DateTimeField()),
                        ("due_at", models.DateTimeField(null=True)),
                        ("attempts", models.PositiveSmallIntegerField(default=0)),
                        (
                            "ended_at",
                            models.DateTimeField(help_text="when it was delivered or given up", null=True),
                        ),
                        ("error", models.TextField(blank=True)),
                        (
                            "webhook",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="deliveries",
                                to="monitor.webhook",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "webhook deliveries",
                        "ordering": ["-id"],
                        "indexes": [
                            models.Index(
                                condition=models.Q(("state", "pending")),
                                fields=["webhook", "id"],
                                name="webhook_pending",
                            ),
                            models.Index(fields=["ended_at"], name="webhook_ended"),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("webhook", "message"), name="webhook_message_once"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(
                                        ("due_at__isnull", False), ("ended_at", None), ("state", "pending")
                                    ),
                                    models.Q(
                                        models.Q(("state", "pending"), _negated=True),
                                        ("due_at", None),
                                        ("ended_at__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="webhook_delivery_due_if_pending",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AnnouncedSite",
                    fields=[
                        (
                            "site",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="+",
                                serialize=False,
                                to="monitor.site",
                            ),
                        ),
                        ("is_down", models.BooleanField()),
                        ("since", models.DateTimeField()),
                    ],
                    options={
                        "ordering": ["site"],
                    },
                ),
                migrations.CreateModel(
                    name="StorageVerdict",
                    fields=[
                        (
                            "series",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="storage_verdict",
                                serialize=False,
                                to="monitor.series",
                            ),
                        ),
                        ("computed_at", models.DateTimeField()),
                        ("newest", models.DateTimeField()),
                        ("content", models.JSONField()),
                    ],
                    options={
                        "ordering": ["series_id"],
                    },
                ),
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
                        (
                            "series",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="monitor.series",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["id"],
                        "indexes": [models.Index(fields=["first", "id"], name="dirtyoutcome_oldest")],
                    },
                ),
                migrations.CreateModel(
                    name="FailureHour",
                    fields=[
                        ("hour", models.DateTimeField(primary_key=True, serialize=False)),
                        ("runs", models.BinaryField()),
                        (
                            "names",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), size=None
                            ),
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
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("id", 1)), name="outcome_progress_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="StandingChange",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("series", models.BigIntegerField(db_column="series_id")),
                    ],
                ),
                migrations.CreateModel(
                    name="OutcomeCount",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("slot", models.DateTimeField()),
                        ("suite", models.BigIntegerField(db_column="suite_id")),
                        ("outcome", models.CharField(max_length=1)),
                        ("n", models.BigIntegerField()),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("slot", "suite", "outcome"), name="outcomecount_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SeriesStanding",
                    fields=[
                        (
                            "series",
                            models.BigIntegerField(db_column="series_id", primary_key=True, serialize=False),
                        ),
                        ("suite", models.BigIntegerField(db_column="suite_id")),
                        ("reporter", models.BigIntegerField(db_column="reporter_id")),
                        ("probe", models.CharField(max_length=100)),
                        (
                            "sites",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.BigIntegerField(), size=None
                            ),
                        ),
                        ("state", models.CharField(max_length=1)),
                        ("culprit", models.BigIntegerField()),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("stale_at", models.DateTimeField(null=True)),
                        ("is_stale", models.BooleanField()),
                        (
                            "slots",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.DateTimeField(), size=None
                            ),
                        ),
                        ("outcomes", models.CharField(blank=True, max_length=20)),
                        ("is_uncounted", models.BooleanField()),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(("is_stale", False)),
                                fields=["stale_at"],
                                name="standing_due",
                            ),
                            models.Index(
                                condition=models.Q(("is_stale", True)),
                                fields=["stale_at"],
                                name="standing_stale",
                            ),
                            models.Index(
                                condition=models.Q(("state__in", ("f", "t", "b", "m", "l"))),
                                fields=["suite"],
                                name="standing_failing",
                            ),
                            models.Index(
                                condition=models.Q(("is_uncounted", True)),
                                fields=["series"],
                                name="standing_uncounted",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="StandingCount",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("suite", models.BigIntegerField(db_column="suite_id")),
                        ("probe", models.CharField(max_length=100)),
                        ("reporter", models.BigIntegerField(db_column="reporter_id")),
                        ("site", models.BigIntegerField(db_column="site_id")),
                        ("standing", models.SmallIntegerField()),
                        ("state", models.CharField(max_length=1)),
                        ("n", models.BigIntegerField()),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("suite", "site", "probe", "reporter", "standing", "state"),
                                name="standingcount_once",
                            )
                        ],
                    },
                ),
            ],
            _database_sql.PARTITIONED_TABLES,
        ),
        migrations.RunSQL([*_database_sql.STATEMENTS, *_outcome_sql.STATEMENTS, *_standings_sql.STATEMENTS]),
        migrations.RunPython(make_first_partitions),
    ]
