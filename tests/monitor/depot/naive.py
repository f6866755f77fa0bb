"""The depot, as simple as can be: lists in memory of what came, and of what was taken away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from monitor.ingest import extract_metrics
from monitor.ingest.reparse import ReparseCounts
from monitor.models.retention_cutoff import DataKind
from reporters import report as wire
from tests.monitor.depot.measured import Value

if TYPE_CHECKING:
    from monitor.ingest.fast_parser import ParsedReport

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
TOTAL = "total.seconds"


class Of(NamedTuple):
    """A metric: the total of the runs of a series (by name) in one of its segments (by a number of ours)."""

    series: str
    segment: int


class Ran(NamedTuple):
    """A run: the name of its series, and its slot."""

    series: str
    slot: datetime

    @property
    def key(self) -> tuple[datetime, UUID]:
        """Reports are read again in its order."""
        return self.slot, wire.run_id(self.series, self.slot)


@dataclass(frozen=True)
class Reading:
    """What a newer parser does: it multiplies by *factor*, and finds nothing in every *skips*-th slot (0: in
    none)."""

    factor: float
    skips: int

    def of(self, slot: datetime, value: float) -> float | None:
        if self.skips and slot.minute // 10 % self.skips == 0:
            return None
        return value * self.factor

    def values(self, report: ParsedReport) -> Mapping[str, float]:
        found = self.of(report.slot, extract_metrics.values(report)[TOTAL])
        return {} if found is None else {TOTAL: found}


@dataclass(frozen=True)
class Keeps:
    """For how many days a suite keeps each kind; None: for ever."""

    reports: int | None
    samples: int | None
    hourly: int | None
    daily: int | None

    def begins(self, now: datetime) -> Iterator[tuple[DataKind, datetime]]:
        """From when on it is kept at *now*, of each kind that is not kept for ever."""
        for kind, days in zip(DataKind, (self.reports, self.samples, self.hourly, self.daily), strict=True):
            if days is not None:
                yield kind, floor(now, DAY) - days * DAY


class Corrected(NamedTuple):
    """A sample that was, or is, another, or none, by which version of the parser."""

    of: Of
    time: datetime
    old: tuple[float, bool] | None
    new: tuple[float, bool] | None
    version: int


@dataclass
class Naive:
    """*ran* is the ledger: which metric each run is of, and what its report said. *reports* has the version
    of the parser that read those that are kept. *samples* are those that are kept; *gone* those that were
    taken away: only rollups know of them. *kept_from* is when each kind of a series' data begins. *changed*
    are hours since they were rolled up; *anew_from* is when those begin that are to be made anew, if any.
    """

    ran: dict[Ran, tuple[Of, Value]] = field(default_factory=dict)
    reports: dict[Ran, int] = field(default_factory=dict)
    samples: dict[Of, dict[datetime, Value]] = field(default_factory=dict)
    gone: dict[Of, dict[datetime, Value]] = field(default_factory=dict)
    kept_from: dict[tuple[str, DataKind], datetime] = field(default_factory=dict)
    corrected: list[Corrected] = field(default_factory=list)
    changed: set[tuple[str, datetime]] = field(default_factory=set)
    anew_from: datetime | None = None

    def takes(self, kind: DataKind, ran: Ran) -> bool:
        since = self.kept_from.get((ran.series, kind))
        return since is None or ran.slot >= since

    def ingest(self, of: Of, new: Mapping[datetime, Value]) -> list[bool]:
        """Of each whether it was there already: that stays as it is."""
        return [self._is_there(of, Ran(of.series, slot), value) for slot, value in new.items()]

    def _is_there(self, of: Of, ran: Ran, value: Value) -> bool:
        if ran in self.ran:
            return True
        self.ran[ran] = of, value
        if self.takes(DataKind.REPORTS, ran):
            self.reports[ran] = extract_metrics.VERSION
        if self.takes(DataKind.SAMPLES, ran):
            self.samples.setdefault(of, {})[ran.slot] = value
            self.changed.add((ran.series, floor(ran.slot, HOUR)))
        return False

    def to_read(self, series: Collection[str], since: datetime, version: int) -> list[Ran]:
        """The runs whose reports an older parser has read."""
        older = [ran for ran, by in self.reports.items() if by < version]
        wanted = [ran for ran in older if ran.series in series and ran.slot >= since]
        return sorted(wanted, key=lambda ran: ran.key)

    def reparse(self, runs: Iterable[Ran], reading: Reading, version: int) -> ReparseCounts:
        done = ReparseCounts()
        for ran in runs:
            if self.takes(DataKind.SAMPLES, ran):
                self._reparse(ran, reading, version, done)
            else:
                done.frozen += 1
        return done

    def _reparse(self, ran: Ran, reading: Reading, version: int, done: ReparseCounts) -> None:
        of, said = self.ran[ran]
        value = reading.of(ran.slot, said.value)
        new = None if value is None else replace(said, value=value)
        there = self.samples.setdefault(of, {})
        old = there.pop(ran.slot, None)
        if new:
            there[ran.slot] = new
        self.reports[ran] = version
        done.read += 1
        if old == new:
            return
        done.added += old is None
        done.removed += new is None
        done.changed += old is not None and new is not None
        self.changed.add((ran.series, floor(ran.slot, HOUR)))
        was, is_now = ((one.value, one.passed) if one else None for one in (old, new))
        self.corrected.append(Corrected(of, ran.slot, was, is_now, version))

    def keep(self, series: str, kind: DataKind, since: datetime) -> None:
        """What is older goes; what has gone before stays so."""
        since = max(since, self.kept_from.get((series, kind), since))
        self.kept_from[series, kind] = since
        if kind == DataKind.REPORTS:
            self.reports = {ran: by for ran, by in self.reports.items() if self.takes(kind, ran)}
        if kind == DataKind.SAMPLES:
            for of in [of for of in self.samples if of.series == series]:
                old = [time for time in self.samples[of] if time < since]
                self.gone.setdefault(of, {}).update((time, self.samples[of].pop(time)) for time in old)

    def too_old(self, series: str, kind: DataKind, since: datetime) -> int:
        """How many raw reports, or samples, are from before *since*."""
        if kind == DataKind.REPORTS:
            return sum(ran.series == series and ran.slot < since for ran in self.reports)
        return sum(time < since for _, time, _ in self._sampled(series))

    def sampled(self, of: Of, start: datetime, end: datetime) -> dict[datetime, Value]:
        there = self.samples.get(of, {})
        return {time: there[time] for time in sorted(there) if start <= time < end}

    def known(self, of: Of, start: datetime, end: datetime, tier: timedelta = DAY) -> dict[datetime, Value]:
        """All that can be told of a stretch: its samples and, for as long as rollups of whole days (or hours,
        by *tier*) are kept, what is gone of those that lie in it."""
        since = self.kept_from.get((of.series, DataKind.HOURLY if tier == HOUR else DataKind.DAILY))
        told = self.sampled(of, start, end)
        for time, value in self.gone.get(of, {}).items():
            begins = floor(time, tier)
            if start <= begins and begins + tier <= end and (since is None or begins >= since):
                told[time] = value
        return dict(sorted(told.items()))

    def rolled(self, before: datetime | None = None) -> None:
        """All hours *before*, or simply all, are rolled up."""
        self.changed = {one for one in self.changed if before and one[1] >= before}
        if self.anew_from:
            self.anew_from = max(self.anew_from, before) if before else None

    def is_complete(self, of: Of, start: datetime, end: datetime) -> bool | None:
        """Whether rollups have all of a stretch; None where that cannot be told from here: an hour that is to
        be made anew, and has nothing."""
        changed = {hour for series, hour in self.changed if series == of.series}
        if self.anew_from:
            there = {floor(time, HOUR) for _, time, _ in self._sampled(of.series)}
            changed.update(hour for hour in there if hour >= self.anew_from)
        since = self.kept_from.get((of.series, DataKind.SAMPLES), start - HOUR)
        if any(start - HOUR < hour < end and hour >= since for hour in changed):
            return False
        return None if self.anew_from and self.anew_from < end else True

    def lately(self, series: str, now: datetime) -> list[list[float]]:
        """Of the metric that passed last, the values of passed runs of each of the 24 hours up to that of
        *now*."""
        passed = [(time, of, one.value) for of, time, one in self._sampled(series) if one.passed]
        of = max(passed)[1] if passed else None
        ends = floor(now, HOUR) + HOUR
        hours = [ends - ago * HOUR for ago in range(24, 0, -1)]
        return [
            [value for time, its, value in passed if its == of and floor(time, HOUR) == hour]
            for hour in hours
        ]

    def _sampled(self, series: str) -> Iterator[tuple[Of, datetime, Value]]:
        for of, there in self.samples.items():
            if of.series == series:
                yield from ((of, time, one) for time, one in there.items())

    def runs(self, series: str) -> list[tuple[datetime, Of, Value]]:
        """Of one series, the oldest first."""
        return sorted((ran.slot, *told) for ran, told in self.ran.items() if ran.series == series)


def floor(time: datetime, length: timedelta) -> datetime:
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (time - midnight) // length * length
