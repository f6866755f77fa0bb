"""Sweeps of the probes ``storage_sweep`` and ``streams`` in the depot: values by combination and pass."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from forecasting.reading.sweeps import StreamRow, Sweep, SweepValue
from monitor.depot.samples.read import samples_of
from monitor.models import Metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from monitor.models import Series

Levels = tuple[str, ...]

STREAM_FACTORS = ("readers", "writers")
PRICES = ("io_seconds", "barrier_seconds", "spread_seconds")  # of a run of streams, beside its seconds
FEWEST_PASSES = {"storage_sweep": 2, "streams": 3}  # that an analysis needs; the first is set aside
PREFIXES = {"storage_sweep": "sweep", "streams": "streams"}  # of the metrics of a probe
_CELL = re.compile(r"(?:sweep|streams)\.([a-z][a-z0-9_]*=[^,=.]+(?:,[a-z][a-z0-9_]*=[^,=.]+)*)\.([a-z_.]+)")
_VALUES = {"sweep": "bytes_per_second", "streams": "seconds"}  # the metric that is compared


@dataclass(frozen=True)
class StoredValue:
    """What was measured with *levels* in the pass *number*, by the run at *run_slot*; *prices* by column."""

    levels: Levels
    number: int
    value: float
    run_slot: datetime
    prices: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredSweep:
    """A sweep that began at *began_at*: values in order of their runs, one a combination and pass.

    *probe* is ``storage_sweep``, whose values are bytes a second, or ``streams``, whose values are seconds.
    """

    probe: str
    began_at: datetime
    factors: tuple[str, ...]
    values: Sequence[StoredValue]

    @property
    def passes(self) -> int:
        return max(value.number for value in self.values)

    @property
    def varied(self) -> tuple[str, ...]:
        """The factors with at least two levels."""
        return tuple(
            factor
            for place, factor in enumerate(self.factors)
            if len({value.levels[place] for value in self.values}) > 1
        )


def stored_sweeps(
    series: Series, start: datetime | None = None, end: datetime | None = None
) -> list[StoredSweep]:
    """Return the sweeps of *series* with runs from *start* to *end*, oldest first.

    A combination that was measured twice in a pass, as after a crash, has its first value.
    """
    prefix = PREFIXES.get(series.probe)
    if prefix is None:
        return []
    metrics = Metric.objects.filter(segment__series=series, name__startswith=f"{prefix}.")
    names: dict[int, str] = dict(metrics.values_list("pk", "name"))
    runs: dict[datetime, dict[str, float]] = {}
    for sample in samples_of(names, start=start, end=end, passed_only=False):
        runs.setdefault(sample.time, {})[names[sample.metric_id]] = sample.value
    sweeps: dict[tuple[float, tuple[str, ...]], dict[tuple[Levels, int], StoredValue]] = {}
    for slot, values in sorted(runs.items()):
        if f"{prefix}.pass" not in values or f"{prefix}.began" not in values:
            continue
        for factors, value in _run_values(prefix, slot, values):
            cells = sweeps.setdefault((values[f"{prefix}.began"], factors), {})
            cells.setdefault((value.levels, value.number), value)
    return [
        StoredSweep(series.probe, datetime.fromtimestamp(began, UTC), factors, list(cells.values()))
        for (began, factors), cells in sorted(sweeps.items())
    ]


def newest_to_analyse(sweeps: Sequence[StoredSweep]) -> StoredSweep:
    """Return the newest of *sweeps* with as many passes as its analysis needs; the newest, if none has."""
    enough = (sweep for sweep in reversed(sweeps) if sweep.passes >= FEWEST_PASSES[sweep.probe])
    return next(enough, sweeps[-1])


def _run_values(
    prefix: str, slot: datetime, values: Mapping[str, float]
) -> Iterator[tuple[tuple[str, ...], StoredValue]]:
    """Yield the factors and the value of each combination that the run at *slot* measured."""
    prices: dict[str, dict[str, float]] = {}
    cells: dict[str, float] = {}
    for name, value in values.items():
        if matched := _CELL.fullmatch(name):
            combination, metric = matched.groups()
            if metric == _VALUES[prefix]:
                cells[combination] = value
            elif (column := metric.replace(".", "_")) in PRICES:
                prices.setdefault(combination, {})[column] = value
    for combination, value in cells.items():
        pairs = [part.partition("=") for part in combination.split(",")]
        levels = tuple(level for _, _, level in pairs)
        number = int(values[f"{prefix}.pass"])
        stored = StoredValue(levels, number, value, slot, prices.get(combination, {}))
        yield tuple(factor for factor, _, _ in pairs), stored


def as_sweep(sweep: StoredSweep) -> Sweep:
    """Return *sweep* as ``forecasting.sweeps.effects`` takes it: its varied factors, values by pass."""
    places = [sweep.factors.index(factor) for factor in sweep.varied]
    cells: dict[Levels, list[SweepValue]] = {}
    for value in sorted(sweep.values, key=lambda each: each.number):
        levels = tuple(value.levels[place] for place in places)
        cells.setdefault(levels, []).append(SweepValue(value.number, value.value))
    return Sweep(sweep.varied, cells)


def as_streams(sweep: StoredSweep) -> list[StreamRow]:
    """Return a sweep of streams as ``forecasting.sweeps.sweet_spot`` takes it."""
    return [
        StreamRow(value.number, int(value.levels[0]), int(value.levels[1]), value.value, dict(value.prices))
        for value in sweep.values
    ]
