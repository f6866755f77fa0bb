"""Read files of measured runs: applications, and the probes that ran beside them.

A file is CSV with the columns ``group,series,kind,started_at,ended_at,value``; columns and rows may be in any
order. *kind* is ``application`` or ``probe``; times are seconds or RFC 3339; a value is known from *ended_at*
on. The probes of a group are the predictors of its applications and of each other. If a run has several
values, such as the durations of its stages, each value has a row, and the column ``metric`` has the name of
the metric. Without this column, the metric may follow the name of the series after a colon, as in
``preco:total.seconds``; such a metric contains a dot. Equal rows are an error, unless the column ``run``
distinguishes them: jobs that start together often end together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

from forecasting.base import Source
from forecasting.reading.tables import CsvRow, UnreadableFile, rows
from forecasting.series import Observation

COLUMNS = ("group", "series", "kind", "started_at", "ended_at", "value")
METRIC = "metric"
RUN = "run"
_METRIC_NAME = re.compile(r"\w+(\.\w+)+")
Kind = Literal["application", "probe"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class RunHistory:
    """All values of one metric of one series, in the order in which the runs started."""

    group: str
    source: Source
    kind: Kind
    observations: list[Observation] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(filter(None, (self.group, *self.source)))


def read(files: Iterable[str]) -> list[RunHistory]:
    """Return the histories in *files*, sorted by group and source. The files count as one file.

    Raises:
        UnreadableFile: a cell is invalid, a run ends before it starts, a row occurs twice, or a series is of
            both kinds. The message names file, line and column.
    """
    histories: dict[tuple[str, Source], RunHistory] = {}
    seen: dict[tuple[str, Source, Observation, str], str] = {}
    for file in files:
        for row in rows(file, COLUMNS):
            _add(row, histories, seen)
    for history in histories.values():
        history.observations.sort(key=_order)
    return [histories[key] for key in sorted(histories)]


def predictor_values_for(
    target: RunHistory, histories: Iterable[RunHistory]
) -> list[tuple[Source, Observation]]:
    """Return the observations of the predictors of *target*, each with its source.

    Predictors are the other metrics of the target's own runs, with "" as series, and the probes of the
    target's group. For a target that is a probe, only the target's metric of the other probes is a predictor.
    """
    return [
        (source, observation)
        for history in histories
        if (source := _source_for(target, history)) is not None
        for observation in history.observations
    ]


def _source_for(target: RunHistory, other: RunHistory) -> Source | None:
    if other.group != target.group or other.source == target.source:
        return None
    if other.source.series == target.source.series:
        return Source("", other.source.metric)
    is_predictor = target.kind == "application" or other.source.metric == target.source.metric
    return other.source if is_predictor and other.kind == "probe" else None


def _add(
    row: CsvRow,
    histories: dict[tuple[str, Source], RunHistory],
    seen: dict[tuple[str, Source, Observation, str], str],
) -> None:
    group, source, kind = row.cells["group"].strip(), _source(row), _kind(row)
    history = histories.setdefault((group, source), RunHistory(group, source, kind))
    if history.kind != kind:
        raise row.error("kind", f"{history.kind} as in the rows of this series before", kind)
    observation = _observation(row)
    run = group, source, observation, row.cells.get(RUN, "").strip()
    if run in seen:
        raise UnreadableFile(f"{row.place}: it repeats the run of {seen[run]}")
    seen[run] = row.place
    history.observations.append(observation)


def _source(row: CsvRow) -> Source:
    series = row.text("series")
    if METRIC in row.cells:
        return Source(series, row.cells[METRIC].strip())
    name, _, metric = series.rpartition(":")
    return Source(name, metric) if name and _METRIC_NAME.fullmatch(metric) else Source(series, "")


def _kind(row: CsvRow) -> Kind:
    text = row.text("kind")
    for kind in KINDS:
        if text == kind:
            return kind
    raise row.error("kind", " or ".join(KINDS), text)


def _observation(row: CsvRow) -> Observation:
    started_at, ended_at = row.time_seconds("started_at"), row.time_seconds("ended_at")
    if ended_at < started_at:
        raise row.error("ended_at", "no earlier time than started_at", row.text("ended_at"))
    return Observation(started_at, ended_at, row.number("value"))


def _order(observation: Observation) -> tuple[float, float, float]:
    return observation.time_seconds, observation.known_at_seconds, observation.value
