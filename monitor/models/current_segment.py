"""Which segment the next run of a series belongs to, kept with what that was told from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib.postgres.indexes import HashIndex
from django.db import models

from monitor.models.segment import Segment
from monitor.models.series import Series

# All of the series named ``series`` in a statement that decides what its next run measures. What is bound is
# called by its name, as in reports.
SETUP = """md5(concat_ws('|', series.probe, series.reporter_id, series.parameters, (
    SELECT string_agg(concat_ws('=', binding.role, bound.name), ',' ORDER BY binding.role, binding.position)
    FROM monitor_binding AS binding JOIN monitor_resource AS bound ON bound.id = binding.resource_id
    WHERE binding.series_id = series.id)))"""


class CurrentSegment(models.Model):
    """Who asks for a forecast shall not have to work out what the next run measures: that is here.

    It holds for as long as the series' ``SETUP`` is *setup*. *segment* is null where the next run begins a
    new one. *application* is the probe, *path* and *resources* what it is bound to (``path_of``,
    ``resources_of``), by which programs ask that know no series.

    There is no constraint, so that who deletes a series never meets one who writes its row.
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
        verbose_name_plural = "current"
        indexes = [
            HashIndex(fields=["path"], name="current_path"),  # as long as anybody likes
            HashIndex(fields=["resources"], name="current_resources"),
        ]

    def __str__(self) -> str:
        return f"{self.series_id}: segment {self.segment_id}"


def path_of(bindings: Mapping[str, Sequence[str]]) -> str:
    """``compute=beta;sources=alpha,gamma``: roles by name, resources in their order."""
    return ";".join(f"{role}={','.join(names)}" for role, names in sorted(bindings.items()))


def resources_of(bindings: Mapping[str, Sequence[str]]) -> str:
    """``alpha,beta,gamma``: each once, by name, whatever their roles."""
    return ",".join(sorted({name for names in bindings.values() for name in names}))
