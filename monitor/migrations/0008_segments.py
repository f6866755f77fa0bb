import gzip
import hashlib
import json

import django.db.models.deletion
from django.db import migrations, models

import probes
from probes.base import ProbeError, checked_parameters

# Rows that were just changed keep their table from being altered until their constraints have been checked.
CHECK_NOW = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED"

# Going back mixes the histories again: of metrics of one name in several segments the first is kept. A slot
# has one run, so that no two values meet; two forecasts may, and one of them goes.
MERGE = """
CREATE TEMPORARY TABLE merged ON COMMIT DROP AS
    SELECT id, first_value(id) OVER (PARTITION BY series_id, name ORDER BY id) AS kept FROM monitor_metric;
DELETE FROM merged WHERE id = kept;
UPDATE monitor_sample SET metric_id = kept FROM merged WHERE metric_id = merged.id;
UPDATE monitor_forecast AS one SET metric_id = kept FROM merged WHERE metric_id = merged.id
    AND NOT EXISTS (
        SELECT FROM monitor_forecast AS other
        WHERE other.metric_id = kept AND other.method = one.method AND other.level = one.level
            AND other.last_known_at = one.last_known_at
    );
DELETE FROM monitor_forecast USING merged WHERE metric_id = merged.id;
DELETE FROM monitor_metric USING merged WHERE monitor_metric.id = merged.id;
"""


def begin_segments(apps, schema_editor):
    """Everything that a series has measured so far becomes its first segment."""
    metrics, segments, every_series = (
        apps.get_model("monitor", name).objects for name in ("Metric", "Segment", "Series")
    )
    for series in every_series.filter(metrics__isnull=False).distinct():
        probe, version, parameters, bindings = said = identity(apps, series)
        canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
        segment = segments.create(
            series=series,
            number=1,
            probe=probe,
            probe_version=version,
            parameters=parameters,
            bindings=bindings,
            fingerprint=hashlib.sha256(canonical.encode()).hexdigest(),
            began_at=first_slot(apps, series) or series.created_at,
        )
        metrics.filter(series=series).update(segment=segment)
    schema_editor.execute(CHECK_NOW)


def identity(apps, series):
    """What *series* measures: as its newest passed run said, else the newest of any run, else its set-up."""
    raw_reports, bound = (apps.get_model("monitor", name).objects for name in ("RawReport", "Binding"))
    bindings = {}
    bound = bound.filter(series=series).order_by("role", "position")
    for role, resource in bound.values_list("role", "resource__name"):
        bindings.setdefault(role, []).append(resource)
    newest = raw_reports.filter(run__series=series).order_by("-run__slot")
    raw = newest.filter(run__state="passed").first() or newest.first()
    if raw is None:
        return (series.probe, *set_up(series), bindings)
    report = json.loads(gzip.decompress(bytes(raw.body_gzip)))
    probe = report["probe"]
    return probe["name"], probe["version"], report["parameters"], report.get("bindings", bindings)


def set_up(series):
    """The version of the probe that *series* names, and its parameters, complete where the probe is there."""
    try:
        probe = probes.load(series.probe)
        return probe.version, checked_parameters(probe, series.parameters)
    except ProbeError:
        return "", series.parameters


def first_slot(apps, series):
    values = apps.get_model("monitor", "Sample").objects.filter(metric__series=series)
    return values.aggregate(first=models.Min("time"))["first"]


def end_segments(_apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "UPDATE monitor_metric SET series_id = one.series_id FROM monitor_segment AS one"
            " WHERE one.id = segment_id"
        )
        cursor.execute(MERGE)
    schema_editor.execute(CHECK_NOW)


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0007_hold"),
    ]

    operations = [
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
                    models.JSONField(default=dict, help_text="role -> names of resources, in order"),
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
        migrations.RemoveConstraint(model_name="metric", name="metric_name_once"),
        migrations.AddField(
            model_name="metric",
            name="segment",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="metrics",
                to="monitor.segment",
            ),
        ),
        migrations.AlterField(
            model_name="metric",
            name="series",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="metrics",
                to="monitor.series",
            ),
        ),
        migrations.RunPython(begin_segments, end_segments),
        migrations.AlterField(
            model_name="metric",
            name="segment",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="metrics", to="monitor.segment"
            ),
        ),
        migrations.RemoveField(model_name="metric", name="series"),
        migrations.AlterModelOptions(name="metric", options={"ordering": ["segment_id", "name"]}),
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.UniqueConstraint(fields=("segment", "name"), name="metric_name_once_a_segment"),
        ),
    ]
