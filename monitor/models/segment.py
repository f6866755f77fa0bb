"""Segments: a series whose setup changes keeps its name and begins a new history."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db import models

from monitor.models.series import Series


@dataclass(frozen=True)
class SegmentIdentity:
    """The identity of a measurement: the probe and its version, all parameters, and the resources by role.

    *bindings* maps each role to the names of its resources, in order.
    """

    probe: str
    probe_version: str
    parameters: Mapping[str, Any]
    bindings: Mapping[str, Sequence[str]]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the identity as canonical JSON, which must never change: fingerprints are stored."""
        bound = {role: list(names) for role, names in self.bindings.items()}
        identity = [self.probe, self.probe_version, dict(self.parameters), bound]
        return hashlib.sha256(
            json.dumps(identity, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()

    @cached_property
    def resources(self) -> frozenset[str]:
        """The names of all resources."""
        return frozenset(name for names in self.bindings.values() for name in names)


class Segment(models.Model):
    """The runs of a series with the same identity: one probe version, one set of parameters, one binding.

    Every metric belongs to a segment, so histories are never mixed. The segment of a report follows from the
    content of the report, not from its time of arrival. Late reports therefore join the right segment, and a
    series that returns to an earlier setup continues the segment of this setup with its forecasts. A segment
    begins with the first run that measured anything; a run that measured nothing belongs to no segment.

    *number* identifies the segment within the series, in order of creation. *began_at* is the earliest slot
    with values.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="segments")
    number = models.PositiveIntegerField()
    probe = models.CharField(max_length=200)
    probe_version = models.CharField(max_length=200)
    parameters = models.JSONField(default=dict)
    bindings = models.JSONField(default=dict, help_text="role -> names of its resources, in order")
    fingerprint = models.CharField(max_length=64)
    began_at = models.DateTimeField()

    class Meta:
        ordering = ["series_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["series", "fingerprint"], name="segment_fingerprint_once"),
            models.UniqueConstraint(fields=["series", "number"], name="segment_number_once"),
        ]

    def __str__(self) -> str:
        return f"{self.series}, segment {self.number}"

    @property
    def identity(self) -> SegmentIdentity:
        return SegmentIdentity(self.probe, self.probe_version, self.parameters, self.bindings)
