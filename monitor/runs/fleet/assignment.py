"""The assignments of remote reporters: documents with everything that an agent needs to run its series.

A new version is made only when the content changed. Forecasts of durations change with every run: they are
no reason for a new version, except once a day if they changed a lot.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from monitor.depot.series.expected_seconds import expected_seconds
from monitor.models import Reporter, ReporterAssignment, Series
from monitor.models.series import IMPORTED, REPORTED_PROBE
from monitor.runs.fleet import windows
from monitor.runs.fleet.assignment_sql import read_series
from reporters.report import rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

FORMAT = 1
FORECASTS_AGE = timedelta(days=1)
FORECASTS_FACTOR = 1.5  # a forecast that changed by less is no reason for a new version
KEPT_VERSIONS = 10
MAX_CAPACITY = 1_000  # of an agent
_DIGITS = 3
_MOST_COMPARED = 10_000
_compared_at: dict[int, datetime] = {}  # when this process last compared the forecasts of an assignment

_ACCESS = ("shell", "transfer", "batch", "address")


def current_assignment(reporter: Reporter, now: datetime) -> ReporterAssignment:
    """Return the newest version of the assignment of *reporter*; make one if the content changed.

    The document of an unchanged version is read once a day.
    """
    newest = _newest(reporter)
    is_same = newest is not None and newest.content_sha256 == _digest(_content(reporter, now))
    if newest is not None and is_same and not _has_old_forecasts(newest, now):
        return newest
    with transaction.atomic():
        Reporter.objects.select_for_update(no_key=True).get(pk=reporter.pk)  # one new version at a time
        content, newest = _content(reporter, now), _newest(reporter)
        expected = _rounded(expected_seconds(_series_of(reporter)))
        if newest and newest.content_sha256 == _digest(content) and not _differ(newest, expected):
            return newest
        # Seconds since 1970, so that versions rise even when the depot was restored from an older backup:
        # agents refuse a version below theirs.
        version = max(int(now.timestamp()), newest.version + 1 if newest else 1)
        series = [{**each, "expected_seconds": expected.get(each["name"], {})} for each in content["series"]]
        head = {"format": FORMAT, "reporter": reporter.name, "version": version, "issued_at": rfc3339(now)}
        made = ReporterAssignment.objects.create(
            reporter=reporter,
            version=version,
            document=_json({**head, **content, "series": series}),
            content_sha256=_digest(content),
            issued_at=now,
        )
        _delete_old_versions(reporter)
        return made


def _delete_old_versions(reporter: Reporter) -> None:
    kept = reporter.assignments.order_by("-version").values_list("version", flat=True)[:KEPT_VERSIONS]
    reporter.assignments.filter(version__lt=min(kept)).delete()


def _newest(reporter: Reporter) -> ReporterAssignment | None:
    return reporter.assignments.order_by("-version").defer("document").first()


def _has_old_forecasts(assignment: ReporterAssignment, now: datetime) -> bool:
    """Return whether the forecasts in *assignment* are a day old and changed a lot.

    Each process looks at them once a day.
    """
    since = max(assignment.issued_at, _compared_at.get(assignment.pk, assignment.issued_at))
    if now - since < FORECASTS_AGE:
        return False
    if len(_compared_at) > _MOST_COMPARED:
        _compared_at.clear()
    _compared_at[assignment.pk] = now
    return _differ(assignment, _rounded(expected_seconds(_series_of(assignment.reporter))))


def _differ(assignment: ReporterAssignment, expected: Mapping[str, Mapping[str, float]]) -> bool:
    """Return whether *expected* has other metrics than *assignment*, or very different durations."""
    sent = {each["name"]: each["expected_seconds"] for each in json.loads(assignment.document)["series"]}
    return any(
        sent[name].keys() != expected.get(name, {}).keys()
        or any(_is_far(seconds, expected[name][metric]) for metric, seconds in sent[name].items())
        for name in sent
    )


def _is_far(before: float, after: float) -> bool:
    low, high = sorted((before, after))
    return high > max(low, 1.0) * FORECASTS_FACTOR


def _rounded(expected: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {metric: float(f"{seconds:.{_DIGITS}g}") for metric, seconds in durations.items()}
        for name, durations in expected.items()
    }


def _content(reporter: Reporter, now: datetime) -> dict[str, Any]:
    """Return the assignment without its version, its time and the expected durations."""
    series, scopes, resources = [], [], {}
    for row in read_series(reporter.pk):
        roles: dict[str, list[str]] = {}
        for role, name, site, scratch, *access in row.bindings:
            roles.setdefault(role, []).append(name)
            place = {"site": site, "scratch": posixpath.normpath(scratch)}  # agents refuse other forms
            resources[name] = {**place, **dict(zip(_ACCESS, access, strict=True))}
        series.append({**row.fields, "bindings": roles})
        sites = frozenset(binding[2] for binding in row.bindings)
        scopes.append(windows.SeriesScopes(row.fields["name"], row.suite, sites))
    return {
        "series": series,
        "resources": dict(sorted(resources.items())),
        "windows": [window.as_document() for window in windows.windows(reporter, scopes, now)],
        "capacity": min(max(reporter.capacity, 1), MAX_CAPACITY),
    }


def _series_of(reporter: Reporter) -> QuerySet[Series]:
    enabled = Series.objects.filter(reporter=reporter, enabled=True)
    return enabled.exclude(probe__startswith=IMPORTED).exclude(probe=REPORTED_PROBE)


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(_json(content).encode()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
