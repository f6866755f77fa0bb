"""Runs of an application and of replays of its calls, by system: the input of forecasts from elsewhere."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from forecasting.elsewhere.runs import IoRun, IoTime, SystemRuns
from monitor.analysis.forecasts.defaults import HEADLINE
from monitor.analysis.forecasts.elsewhere_sql import MeasuredSeries, RunValue, measured_series, newest_values
from monitor.models import Segment
from probes.common.io_classes import IO_CLASSES
from probes.common.signature import BadSignature, digest

REPLAY = "replay"  # the probe
QUEUE = "stage.queue_wait.seconds"
MOST_RUNS = 30
MOST_WAITS = 300
_SECONDS = {f"io.{name}.seconds": name for name in IO_CLASSES}
_BYTES = {f"io.{name}.bytes": name for name in IO_CLASSES}
# Parameters that change neither the calls of an application nor their times.
_IRRELEVANT = frozenset({"trace", "wall_seconds"})


class TracedApplication(NamedTuple):
    """The application whose calls a signature has, and the *digest* of the signature.

    *manner* has the other parameters of the replay, as JSON: only replays in one manner are compared.
    """

    probe: str
    parameters: Mapping[str, Any]
    digest: str
    manner: str


@dataclass(frozen=True)
class Replay:
    """A series that replays the calls of *application*."""

    measured: MeasuredSeries
    application: TracedApplication


class RunTotal(NamedTuple):
    """The parts of a run that are no input and output, in seconds."""

    total_seconds: float
    queue_seconds: float


@dataclass
class SegmentRuns:
    """The newest runs of a segment, oldest first: *totals* are by start, *newest* is the last slot, and
    *known_at* is when the newest value became known."""

    io: Sequence[IoRun]
    totals: Mapping[float, RunTotal]
    newest: datetime
    known_at: datetime


def comparable(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return *parameters* without those on which neither the calls nor their times depend."""
    return {name: value for name, value in parameters.items() if name not in _IRRELEVANT}


def replays() -> list[Replay]:
    """Return the series that have replayed a signature of an application."""
    found = measured_series([REPLAY], _SECONDS)
    applications = _applications({each.fingerprint: each.segment for each in found})
    return [
        Replay(each, application)
        for each in found
        if (application := applications[each.fingerprint]) is not None
    ]


def traced(probes: Collection[str]) -> list[MeasuredSeries]:
    """Return the series of *probes* that measure their input and output."""
    return measured_series(probes, _SECONDS)


def segment_parameters(segments: Iterable[int]) -> dict[int, Mapping[str, Any]]:
    return dict(Segment.objects.filter(pk__in=list(segments)).values_list("pk", "parameters"))


def newest_runs(segments: Collection[int], now: datetime) -> dict[int, SegmentRuns]:
    """Return the newest runs of *segments* known *now*, by segment; segments without runs are left out."""
    names = [*_SECONDS, *_BYTES, HEADLINE, QUEUE]
    by_segment: dict[int, list[RunValue]] = defaultdict(list)
    for value in newest_values(segments, names, now, MOST_RUNS):
        by_segment[value.segment].append(value)
    return {segment: _runs(values) for segment, values in by_segment.items()}


def queue_waits(segment: int, now: datetime) -> list[tuple[float, float]]:
    """Return the newest waits of *segment* in the queue, oldest first: pairs of (start, seconds)."""
    values = newest_values([segment], [QUEUE], now, MOST_WAITS)
    return [(value.time.timestamp(), value.value) for value in values]


def system_runs(name: str, application: SegmentRuns | None, replay: SegmentRuns | None) -> SystemRuns:
    return SystemRuns(name, application.io if application else (), replay.io if replay else ())


def _runs(values: Sequence[RunValue]) -> SegmentRuns:
    by_run: dict[float, dict[str, float]] = defaultdict(dict)
    for value in values:
        by_run[value.time.timestamp()][value.name] = value.value
    runs = (IoRun(started, _classes(metrics)) for started, metrics in sorted(by_run.items()))
    totals = {
        started: RunTotal(metrics[HEADLINE], metrics.get(QUEUE, 0.0))
        for started, metrics in by_run.items()
        if HEADLINE in metrics
    }
    return SegmentRuns(
        [run for run in runs if run.classes],
        totals,
        max(value.time for value in values),
        max(value.known_at for value in values),
    )


def _classes(metrics: Mapping[str, float]) -> dict[str, IoTime]:
    moved = {_BYTES[name]: value for name, value in metrics.items() if name in _BYTES}
    return {
        _SECONDS[name]: IoTime(max(value, 0.0), moved.get(_SECONDS[name]))
        for name, value in metrics.items()
        if name in _SECONDS
    }


def _applications(segments: Mapping[str, int]) -> dict[str, TracedApplication | None]:
    """Return the application of each replay's segment, by the fingerprint of the segment."""
    return {fingerprint: _application(fingerprint, segment) for fingerprint, segment in segments.items()}


@lru_cache(maxsize=1024)  # a fingerprint includes the signature, of up to 64 KiB
def _application(_fingerprint: str, segment: int) -> TracedApplication | None:
    """Return the application of the signature that *segment* replays; None if the signature names none."""
    own = comparable(Segment.objects.values_list("parameters", flat=True).get(pk=segment))
    own.pop("signature_digest", None)
    text = own.pop("signature", "")
    try:
        of_calls = digest(text)
        application = json.loads(text)["application"]
        probe, parameters = application["probe"], dict(application["parameters"])
    except (BadSignature, ValueError, TypeError, KeyError):
        return None
    return TracedApplication(str(probe), comparable(parameters), of_calls, json.dumps(own, sort_keys=True))
