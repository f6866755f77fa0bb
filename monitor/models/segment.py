"""Segments: a series keeps its name when what it runs changes, but not its history."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db import models

from monitor.models.series import Series

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


@dataclass(frozen=True)
class Identity:
    """What a run measures: a probe of one version, its parameters, complete and checked, and what each of its
    roles is bound to (role -> names of resources, in order)."""

    probe: str
    probe_version: str
    parameters: Mapping[str, Any]
    bindings: Mapping[str, Sequence[str]]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of it as JSON, sorted by name: the same everywhere and for ever."""
        bound = {role: list(names) for role, names in self.bindings.items()}
        said = [self.probe, self.probe_version, dict(self.parameters), bound]
        return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class SegmentQuerySet(models.QuerySet["Segment"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> SegmentQuerySet:
        return self.filter(series__in=Series.objects.visible_to(user))


class Segment(models.Model):
    """The runs of a series that measured the same: one probe version, one set of parameters, one binding.

    Every metric belongs to a segment, so that histories are never mixed. Which one a run belongs to is told
    by what its report says, not by when it came: a report that is late goes where it belongs. For the same
    reason a series that goes back to what it ran before goes on with that segment: it measures the same
    again, what lies between is a pause, and its forecasts need not begin anew. A segment begins with its
    first run that measured anything; a run that measured nothing belongs to none.

    *number* is its name within the series, in the order in which the depot met them. *began_at* is the
    earliest slot that it has values of.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="segments")
    number = models.PositiveIntegerField()
    probe = models.CharField(max_length=200)
    probe_version = models.CharField(max_length=200)
    parameters = models.JSONField(default=dict)
    bindings = models.JSONField(default=dict, help_text="role -> names of resources, in order")
    fingerprint = models.CharField(max_length=64)
    began_at = models.DateTimeField()

    objects = SegmentQuerySet.as_manager()

    class Meta:
        ordering = ["series_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["series", "fingerprint"], name="segment_fingerprint_once"),
            models.UniqueConstraint(fields=["series", "number"], name="segment_number_once"),
        ]

    def __str__(self) -> str:
        return f"{self.series}, segment {self.number}"

    @property
    def identity(self) -> Identity:
        return Identity(self.probe, self.probe_version, self.parameters, self.bindings)
