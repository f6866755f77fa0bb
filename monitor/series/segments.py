"""Which segment of its series the next run belongs to, and what has changed since the last."""

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
from monitor.models import Binding, Metric, Segment, Series
from monitor.models.reporter import HOME
from monitor.models.segment import Identity
from monitor.series.segment_diff import SegmentChange, changed_subjects, segment_changes
from probes.base import Probe, ProbeError, checked_parameters

TOTAL = "total.seconds"


def current_bindings(series: Collection[int]) -> dict[int, dict[str, list[str]]]:
    """What each of *series* is bound to, by primary key; without those that are bound to nothing."""
    bound = Binding.objects.filter(series__in=series).order_by("series_id", "role", "position")
    found = groupby(bound.values_list("series_id", "role", "resource__name"), key=itemgetter(0))
    return {of: _by_role((role, name) for _, role, name in rows) for of, rows in found}


def _by_role(bound: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    roles: dict[str, list[str]] = {}
    for role, resource in bound:
        roles.setdefault(role, []).append(resource)
    return roles


def current_segments(series: QuerySet[Series]) -> dict[int, int]:
    """The segment that the next run of each of *series* belongs to, by primary keys; without those whose next
    run begins a new one. The number of queries does not depend on how many there are."""
    would_run = _identities(series)
    known = Segment.objects.filter(series__in=would_run).values_list("series_id", "fingerprint", "pk")
    pks = {(of, fingerprint): pk for of, fingerprint, pk in known}
    found = {of: pks.get((of, identity.fingerprint)) for of, identity in would_run.items()}
    return {of: pk for of, pk in found.items() if pk is not None}


def local_identity(
    name: str, parameters: Mapping[str, Any], bindings: Mapping[str, Sequence[str]]
) -> Identity:
    """What a series measures that is run on this host: the probe *name*, as it is here."""
    probe = _probe_here(name)
    if probe is None:
        return Identity(name, "", parameters, bindings)
    try:
        return Identity(name, probe.version, checked_parameters(probe, parameters), bindings)
    except ProbeError:  # its runs say so, each
        return Identity(name, probe.version, parameters, bindings)


def current_metrics(series: QuerySet[Series]) -> QuerySet[Metric]:
    """The metrics of the current segment of each of *series*: what is forecast from."""
    return Metric.objects.filter(segment__in=current_segments(series).values())


@dataclass(frozen=True)
class SegmentStatus:
    """A series and its segments, by time. *current* is what its next run belongs to; None: it begins one.

    *changes* are since the last run that passed or, if that was of the current segment already, since the
    segment before; none if it is the only one, or was gone back to.
    """

    segments: Sequence[Segment]
    current: Segment | None
    changes: Sequence[SegmentChange]
    is_changed: bool  # since the last run that passed

    @property
    def is_newest(self) -> bool:
        """Whether the current segment is the one that began last; no other is gone back to."""
        return self.current is not None and self.current == self.segments[-1]

    def said(self, passed: int) -> str:
        """How many runs have *passed*, and since when they count: ``2 runs have passed since its parameters
        changed on 2026-11-20 14:03 UTC``."""
        runs = {0: "no run has", 1: "1 run has"}.get(passed, f"{passed} runs have")
        if not self.changes:
            return f"{runs} passed {'so far' if passed else 'yet'}"
        if self.current and not self.is_newest:
            return f"{runs} passed with what it went back to (segment {self.current.number})"
        when = f" on {self.current.began_at:%Y-%m-%d %H:%M} UTC" if self.current else ""
        return f"{runs} passed since {changed_subjects(self.changes)} changed{when}"


def segment_status(series: Series) -> SegmentStatus:
    """How *series* stands to its segments."""
    return segment_statuses([series.pk])[series.pk]


def segment_statuses(series: Collection[int]) -> dict[int, SegmentStatus]:
    """How each of *series* stands to its segments, by primary key. The number of queries does not depend on
    how many there are."""
    passed_last = _passed_last(series)
    segments: dict[int, list[Segment]] = {}
    for segment in Segment.objects.filter(series__in=series).order_by("began_at", "number"):
        segments.setdefault(segment.series_id, []).append(segment)
    would_run = _identities(Series.objects.filter(pk__in=series))
    return {
        pk: _standing(identity, segments.get(pk, []), passed_last.get(pk))
        for pk, identity in would_run.items()
    }


def _standing(would_run: Identity, segments: Sequence[Segment], passed_last: Segment | None) -> SegmentStatus:
    fingerprint = would_run.fingerprint
    current = next((one for one in segments if one.fingerprint == fingerprint), None)
    newest = passed_last or (segments[-1] if segments else None)
    is_changed = newest is not None and newest.fingerprint != fingerprint
    before = newest if is_changed else _before(current, segments)
    return SegmentStatus(segments, current, segment_changes(before, would_run) if before else (), is_changed)


def _before(current: Segment | None, segments: Sequence[Segment]) -> Segment | None:
    """The one before *current*, if that is the newest."""
    return segments[-2] if len(segments) > 1 and segments[-1] == current else None


def _identities(series: QuerySet[Series]) -> dict[int, Identity]:
    """What each of *series* would run now, by primary key."""
    bound = Binding.objects.filter(series=OuterRef("pk")).order_by("role", "position")
    pairs = ArraySubquery(bound.values(pair=JSONObject(role="role", resource="resource__name")))
    setups = Series.objects.filter(pk__in=series.order_by().values("pk")).values(
        "pk", "probe", "parameters", "reporter__name", bound=pairs
    )
    probe_here = lru_cache(maxsize=None)(_probe_here)
    rows = {setup["pk"]: (setup, probe_here(setup["probe"])) for setup in setups}
    untold = [pk for pk, (setup, probe) in rows.items() if probe is None or setup["reporter__name"] != HOME]
    passed_last = _passed_last(untold)
    return {pk: _identity(setup, probe, passed_last.get(pk)) for pk, (setup, probe) in rows.items()}


def _identity(setup: Mapping[str, Any], probe: type[Probe] | None, passed_last: Segment | None) -> Identity:
    """What a series would run. What this server cannot tell -- it has not got the probe, or the series is run
    by a reporter elsewhere, which may have another version -- is as in its newest passed run.
    """
    name, given = setup["probe"], setup["parameters"]
    bindings = _by_role((one["role"], one["resource"]) for one in setup["bound"])
    version = probe.version if probe else None
    if passed_last is not None and passed_last.probe == name and passed_last.probe_version != version:
        return Identity(name, passed_last.probe_version, {**passed_last.parameters, **given}, bindings)
    return local_identity(name, given, bindings)


def _probe_here(name: str) -> type[Probe] | None:
    try:
        return probes.load(name)
    except Exception:  # noqa: BLE001  # there is none, or its file is broken: its runs say so, each
        return None


def _passed_last(series: Collection[int]) -> dict[int, Segment]:
    """The segment of the newest passed run of each of *series*, by primary key."""
    if not series:
        return {}
    totals = Metric.objects.filter(segment__series__in=series, name=TOTAL).annotate(newest=newest_time())
    passed = totals.filter(newest__isnull=False).select_related("segment").order_by("newest")
    return {metric.segment.series_id: metric.segment for metric in passed}
