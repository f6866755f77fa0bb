"""Find the segment that the next run of a series belongs to, and the changes since the last run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet
from django.db.models.functions import JSONObject

import probes
from monitor.depot.samples.read import newest_time
from monitor.depot.series.segment_diff import SegmentChange, changed_subjects, segment_changes
from monitor.models import Binding, Metric, Segment, Series
from monitor.models.reporter import HOME
from monitor.models.segment import SegmentIdentity
from probes.base import Probe, ProbeError, checked_parameters

TOTAL = "total.seconds"


def current_bindings(series: Collection[int]) -> dict[int, dict[str, list[str]]]:
    """Return, by primary key of the series, the resources by role; omit series without resources."""
    bindings = Binding.objects.filter(series__in=series).order_by("series_id", "role", "position")
    by_series = groupby(bindings.values_list("series_id", "role", "resource__name"), key=itemgetter(0))
    return {key: _by_role((role, name) for _, role, name in rows) for key, rows in by_series}


def _by_role(bindings: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    roles: dict[str, list[str]] = {}
    for role, resource in bindings:
        roles.setdefault(role, []).append(resource)
    return roles


def current_segments(series: QuerySet[Series]) -> dict[int, int]:
    """Return the segment that the next run of each of *series* belongs to, by primary keys.

    Series whose next run begins a new segment are left out. The number of queries is constant.
    """
    identities = next_identities(series)
    segments = Segment.objects.filter(series__in=identities).values_list("series_id", "fingerprint", "pk")
    keys = {(series_key, fingerprint): pk for series_key, fingerprint, pk in segments}
    current = {
        series_key: keys.get((series_key, identity.fingerprint))
        for series_key, identity in identities.items()
    }
    return {series_key: pk for series_key, pk in current.items() if pk is not None}


def local_identity(
    name: str, parameters: Mapping[str, Any], bindings: Mapping[str, Sequence[str]]
) -> SegmentIdentity:
    """Return the identity of a series that runs the probe *name* in the version of this host."""
    probe = _local_probe(name)
    if probe is None:
        return SegmentIdentity(name, "", parameters, bindings)
    try:
        return SegmentIdentity(name, probe.version, checked_parameters(probe, parameters), bindings)
    except ProbeError:  # every run of it ends with this error
        return SegmentIdentity(name, probe.version, parameters, bindings)


def current_metrics(series: QuerySet[Series]) -> QuerySet[Metric]:
    """Return the metrics of the current segments of *series*; the next run is forecast from these metrics."""
    return Metric.objects.filter(segment__in=current_segments(series).values())


@dataclass(frozen=True)
class SegmentStatus:
    """The segments of a series, and what changed.

    Attributes:
        segments: the segments in the order in which they began.
        current: the segment that the next run belongs to; None if the next run begins a new segment.
        changes: the differences between the next run and the segment of the last passed run. If both belong
            to the same segment, the differences to the segment before it; empty if there is no such segment,
            or if the series has returned to an earlier segment.
        is_changed: whether anything has changed since the last passed run.
    """

    segments: Sequence[Segment]
    current: Segment | None
    changes: Sequence[SegmentChange]
    is_changed: bool

    @property
    def is_newest(self) -> bool:
        """Whether the current segment began last."""
        return self.current is not None and self.current == self.segments[-1]

    def passed_text(self, passed: int) -> str:
        """Return a text such as ``2 runs have passed since its parameters changed on 2026-11-20 14:03 UTC``.

        *passed* is the number of runs that have passed in the current segment.
        """
        runs = {0: "no run has", 1: "1 run has"}.get(passed, f"{passed} runs have")
        if not self.changes:
            return f"{runs} passed {'so far' if passed else 'yet'}"
        if self.current and not self.is_newest:
            return f"{runs} passed with what it went back to (segment {self.current.number})"
        when = f" on {self.current.began_at:%Y-%m-%d %H:%M} UTC" if self.current else ""
        return f"{runs} passed since {changed_subjects(self.changes)} changed{when}"


def segment_status(series: Series) -> SegmentStatus:
    """Return the status of *series*."""
    return segment_statuses([series.pk])[series.pk]


def segment_statuses(series: Collection[int]) -> dict[int, SegmentStatus]:
    """Return the status of each of *series*, by primary key. The number of queries is constant."""
    passed_last = _passed_last(series)
    segments: dict[int, list[Segment]] = {}
    for segment in Segment.objects.filter(series__in=series).order_by("began_at", "number"):
        segments.setdefault(segment.series_id, []).append(segment)
    identities = next_identities(Series.objects.filter(pk__in=series))
    return {
        pk: _status(identity, segments.get(pk, []), passed_last.get(pk))
        for pk, identity in identities.items()
    }


def _status(
    identity: SegmentIdentity, segments: Sequence[Segment], passed_last: Segment | None
) -> SegmentStatus:
    fingerprint = identity.fingerprint
    current = next((segment for segment in segments if segment.fingerprint == fingerprint), None)
    newest = passed_last or (segments[-1] if segments else None)
    is_changed = newest is not None and newest.fingerprint != fingerprint
    before = newest
    if not is_changed:
        before = segments[-2] if len(segments) > 1 and segments[-1] == current else None
    return SegmentStatus(segments, current, segment_changes(before, identity) if before else (), is_changed)


def next_identities(series: QuerySet[Series]) -> dict[int, SegmentIdentity]:
    """Return, by primary key, the identity that a run of each of *series* would have now."""
    bindings = Binding.objects.filter(series=OuterRef("pk")).order_by("role", "position")
    pairs = ArraySubquery(bindings.values(pair=JSONObject(role="role", resource="resource__name")))
    setups = Series.objects.filter(pk__in=series.order_by().values("pk")).values(
        "pk", "probe", "parameters", "reporter__name", bound=pairs
    )
    local_probe = lru_cache(maxsize=None)(_local_probe)
    rows = {setup["pk"]: (setup, local_probe(setup["probe"])) for setup in setups}
    unknown = [pk for pk, (setup, probe) in rows.items() if probe is None or setup["reporter__name"] != HOME]
    passed_last = _passed_last(unknown)
    return {pk: _identity(setup, probe, passed_last.get(pk)) for pk, (setup, probe) in rows.items()}


def _identity(
    setup: Mapping[str, Any], probe: type[Probe] | None, passed_last: Segment | None
) -> SegmentIdentity:
    """Return the identity that a run of a series would have now.

    This server does not know the version of a probe that is not installed here, or that a remote reporter
    runs. In both cases the version of the newest passed run is used.
    """
    name, own_parameters = setup["probe"], setup["parameters"]
    bindings = _by_role((pair["role"], pair["resource"]) for pair in setup["bound"])
    version = probe.version if probe else None
    if passed_last is not None and passed_last.probe == name and passed_last.probe_version != version:
        return SegmentIdentity(
            name, passed_last.probe_version, {**passed_last.parameters, **own_parameters}, bindings
        )
    return local_identity(name, own_parameters, bindings)


def _local_probe(name: str) -> type[Probe] | None:
    try:
        return probes.load(name)
    except Exception:  # noqa: BLE001  # missing or broken file: every run of it ends with this error
        return None


def _passed_last(series: Collection[int]) -> dict[int, Segment]:
    """Return the segment of the newest passed run of each of *series*, by primary key."""
    if not series:
        return {}
    totals = Metric.objects.filter(segment__series__in=series, name=TOTAL).annotate(newest=newest_time())
    passed = totals.filter(newest__isnull=False).select_related("segment").order_by("newest")
    return {metric.segment.series_id: metric.segment for metric in passed}
