"""The segment that the next run of a series belongs to, with the setup from which it was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib.postgres.indexes import HashIndex
from django.db import models

from monitor.models.segment import Segment
from monitor.models.series import Series

# SQL for a digest of everything on which the identity of the next run of the row ``series`` depends.
# Resources count by name, as in reports. A subquery for each name: a join would hash all resources each time.
SETUP = """md5(concat_ws('|', series.probe, series.reporter_id, series.parameters, (
    SELECT string_agg(concat_ws('=', binding.role, (
        SELECT bound.name FROM monitor_resource AS bound WHERE bound.id = binding.resource_id
    )), ',' ORDER BY binding.role, binding.position)
    FROM monitor_binding AS binding WHERE binding.series_id = series.id)))"""


class CurrentSegment(models.Model):
    """The segment of the next run of a series, stored so that a forecast request need not compute it.

    Attributes:
        segment: null if the next run begins a new segment.
        setup: the ``SETUP`` of the series from which the row was computed; the row is valid while the series
            has this setup.
        application: the name of the probe.
        path: the bindings as ``path_of`` writes them.
        resources: the bindings as ``resources_of`` writes them.

    A client that does not know the series finds the row by *application* and either *path* or *resources*.
    There are no foreign key constraints, so that deleting a series never waits for a writer of its row.
    """

    series = models.OneToOneField(Series, models.CASCADE, primary_key=True, db_constraint=False)
    segment = models.ForeignKey(
        Segment, models.CASCADE, null=True, related_name="+", db_constraint=False, db_index=False
    )
    setup = models.CharField(max_length=32)
    application = models.CharField(max_length=200)
    path = models.TextField()
    resources = models.TextField()

    class Meta:
        verbose_name_plural = "current segments"
        indexes = [
            # Hash indexes: the values may be longer than a B-tree allows.
            HashIndex(fields=["path"], name="current_path"),
            HashIndex(fields=["resources"], name="current_resources"),
        ]

    def __str__(self) -> str:
        return f"{self.series_id}: segment {self.segment_id}"


def path_of(bindings: Mapping[str, Sequence[str]]) -> str:
    """Return *bindings* as text, with roles sorted by name: ``compute=beta;sources=alpha,gamma``."""
    return ";".join(f"{role}={','.join(names)}" for role, names in sorted(bindings.items()))


def resources_of(bindings: Mapping[str, Sequence[str]]) -> str:
    """Return the distinct resources of *bindings*, sorted by name, as text: ``alpha,beta,gamma``."""
    return ",".join(sorted({name for names in bindings.values() for name in names}))
