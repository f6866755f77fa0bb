"""A model of the depot: lists in memory of stored and deleted data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from monitor.models.retention_cutoff import DataKind
from monitor.runs.ingest import extract_metrics
from monitor.runs.ingest.reparse import ReparseCounts
from reporters import report as wire
from tests.monitor.depot.sample_model import Value

if TYPE_CHECKING:
    from monitor.runs.ingest.fast_parser import ParsedReport

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
TOTAL = "total.seconds"


class MetricKey(NamedTuple):
    """A metric: the total of a series (its name) in one of its segments (numbered here)."""

    series: str
    segment: int


class RunKey(NamedTuple):
    """A run: the name of its series and its slot."""

    series: str
    slot: datetime

    @property
    def key(self) -> tuple[datetime, UUID]:
        """Return the sort key of reparsing."""
        return self.slot, wire.run_id(self.series, self.slot)


@dataclass(frozen=True)
class ParserVariant:
    """A parser version: multiplies values by *factor* and drops every *skips*-th slot (0: none)."""

    factor: float
    skips: int

    def parse(self, slot: datetime, value: float) -> float | None:
        if self.skips and slot.minute // 10 % self.skips == 0:
            return None
        return value * self.factor

    def values(self, report: ParsedReport) -> Mapping[str, float]:
        parsed = self.parse(report.slot, extract_metrics.values(report)[TOTAL])
        return {} if parsed is None else {TOTAL: parsed}


@dataclass(frozen=True)
class RetentionDays:
    """The retention of a suite in days by kind; None: for ever."""

    reports: int | None
    samples: int | None
    hourly: int | None
    daily: int | None

    def begins(self, now: datetime) -> Iterator[tuple[DataKind, datetime]]:
        """Yield the cutoff at *now* of each kind that is not kept for ever."""
        for kind, days in zip(DataKind, (self.reports, self.samples, self.hourly, self.daily), strict=True):
            if days is not None:
                yield kind, floor(now, DAY) - days * DAY


class Corrected(NamedTuple):
    """A correction: the old and the new sample, None where there is none, and the parser version."""

    key: MetricKey
    time: datetime
    old: tuple[float, bool] | None
    new: tuple[float, bool] | None
    version: int


@dataclass
class DepotModel:
    """*ran* is the ledger: the metric and the value of each run. *reports* has the parser version of each
    stored report. *samples* are stored, *gone* were deleted and only rollups know them. *kept_from* has
    the cutoffs, *changed* the dirty hours; a rebuild, if any, has made all hours from *anew_from* on dirty.
    """

    ran: dict[RunKey, tuple[MetricKey, Value]] = field(default_factory=dict)
    reports: dict[RunKey, int] = field(default_factory=dict)
    samples: dict[MetricKey, dict[datetime, Value]] = field(default_factory=dict)
    gone: dict[MetricKey, dict[datetime, Value]] = field(default_factory=dict)
    kept_from: dict[tuple[str, DataKind], datetime] = field(default_factory=dict)
    corrected: list[Corrected] = field(default_factory=list)
    changed: set[tuple[str, datetime]] = field(default_factory=set)
    anew_from: datetime | None = None

    def takes(self, kind: DataKind, ran: RunKey) -> bool:
        since = self.kept_from.get((ran.series, kind))
        return since is None or ran.slot >= since

    def ingest(self, key: MetricKey, new: Mapping[datetime, Value]) -> list[bool]:
        """Store new values; return for each whether it existed, which stays unchanged."""
        return [self._is_there(key, RunKey(key.series, slot), value) for slot, value in new.items()]

    def _is_there(self, key: MetricKey, ran: RunKey, value: Value) -> bool:
        if ran in self.ran:
            return True
        self.ran[ran] = key, value
        if self.takes(DataKind.REPORTS, ran):
            self.reports[ran] = extract_metrics.VERSION
        if self.takes(DataKind.SAMPLES, ran):
            self.samples.setdefault(key, {})[ran.slot] = value
            self.changed.add((ran.series, floor(ran.slot, HOUR)))
        return False

    def to_read(self, series: Collection[str], since: datetime, version: int) -> list[RunKey]:
        """Return the runs whose reports an older version parsed, in the order of reparsing."""
        older = [ran for ran, by in self.reports.items() if by < version]
        wanted = [ran for ran in older if ran.series in series and ran.slot >= since]
        return sorted(wanted, key=lambda ran: ran.key)

    def reparse(self, runs: Iterable[RunKey], reading: ParserVariant, version: int) -> ReparseCounts:
        done = ReparseCounts()
        for ran in runs:
            if self.takes(DataKind.SAMPLES, ran):
                self._reparse(ran, reading, version, done)
            else:
                done.frozen += 1
        return done

    def _reparse(self, ran: RunKey, reading: ParserVariant, version: int, done: ReparseCounts) -> None:
        key, reported = self.ran[ran]
        value = reading.parse(ran.slot, reported.value)
        new = None if value is None else replace(reported, value=value)
        samples = self.samples.setdefault(key, {})
        old = samples.pop(ran.slot, None)
        if new:
            samples[ran.slot] = new
        self.reports[ran] = version
        done.read += 1
        if old == new:
            return
        done.added += old is None
        done.removed += new is None
        done.changed += old is not None and new is not None
        self.changed.add((ran.series, floor(ran.slot, HOUR)))
        before, after = ((each.value, each.passed) if each else None for each in (old, new))
        self.corrected.append(Corrected(key, ran.slot, before, after, version))

    def keep(self, series: str, kind: DataKind, since: datetime) -> None:
        """Delete data before *since*; a cutoff never moves back."""
        since = max(since, self.kept_from.get((series, kind), since))
        self.kept_from[series, kind] = since
        if kind == DataKind.REPORTS:
            self.reports = {ran: by for ran, by in self.reports.items() if self.takes(kind, ran)}
        if kind == DataKind.SAMPLES:
            for key in [each for each in self.samples if each.series == series]:
                old = [time for time in self.samples[key] if time < since]
                self.gone.setdefault(key, {}).update((time, self.samples[key].pop(time)) for time in old)

    def too_old(self, series: str, kind: DataKind, since: datetime) -> int:
        """Count the raw reports, or samples, before *since*."""
        if kind == DataKind.REPORTS:
            return sum(ran.series == series and ran.slot < since for ran in self.reports)
        return sum(time < since for _, time, _ in self._sampled(series))

    def sampled(self, key: MetricKey, start: datetime, end: datetime) -> dict[datetime, Value]:
        samples = self.samples.get(key, {})
        return {time: samples[time] for time in sorted(samples) if start <= time < end}

    def covered(
        self, key: MetricKey, start: datetime, end: datetime, tier: timedelta = DAY
    ) -> dict[datetime, Value]:
        """Return the values that statistics cover: samples, and deleted samples whose rollups are kept.

        *tier* is the length of a rollup, which has to lie in the range.
        """
        since = self.kept_from.get((key.series, DataKind.HOURLY if tier == HOUR else DataKind.DAILY))
        values = self.sampled(key, start, end)
        for time, value in self.gone.get(key, {}).items():
            begins = floor(time, tier)
            if start <= begins and begins + tier <= end and (since is None or begins >= since):
                values[time] = value
        return dict(sorted(values.items()))

    def rolled(self, before: datetime | None = None) -> None:
        """Roll up all hours *before* a time, or all."""
        self.changed = {changed for changed in self.changed if before and changed[1] >= before}
        if self.anew_from:
            self.anew_from = max(self.anew_from, before) if before else None

    def is_complete(self, key: MetricKey, start: datetime, end: datetime) -> bool | None:
        """Return whether no hour of the range is dirty; None if a rebuild made only empty ones dirty."""
        changed = {hour for series, hour in self.changed if series == key.series}
        if self.anew_from:
            hours = {floor(time, HOUR) for _, time, _ in self._sampled(key.series)}
            changed.update(hour for hour in hours if hour >= self.anew_from)
        since = self.kept_from.get((key.series, DataKind.SAMPLES), start - HOUR)
        if any(start - HOUR < hour < end and hour >= since for hour in changed):
            return False
        return None if self.anew_from and self.anew_from < end else True

    def lately(self, series: str, now: datetime) -> list[list[float]]:
        """Return the values of passed runs of each of the last 24 hours, of the metric that passed last."""
        passed = [(time, key, value.value) for key, time, value in self._sampled(series) if value.passed]
        key = max(passed)[1] if passed else None
        ends = floor(now, HOUR) + HOUR
        hours = [ends - ago * HOUR for ago in range(24, 0, -1)]
        return [
            [value for time, its, value in passed if its == key and floor(time, HOUR) == hour]
            for hour in hours
        ]

    def _sampled(self, series: str) -> Iterator[tuple[MetricKey, datetime, Value]]:
        for key, samples in self.samples.items():
            if key.series == series:
                yield from ((key, time, value) for time, value in samples.items())

    def runs(self, series: str) -> list[tuple[datetime, MetricKey, Value]]:
        """Return the runs of one series, oldest first."""
        return sorted((ran.slot, *run) for ran, run in self.ran.items() if ran.series == series)


def floor(time: datetime, length: timedelta) -> datetime:
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (time - midnight) // length * length
