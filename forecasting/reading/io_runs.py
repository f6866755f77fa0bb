"""Read files of input and output: how long an application, and replays of its calls, took on systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from forecasting.elsewhere.runs import IoRun, IoTime, SystemRuns
from forecasting.reading.tables import CsvRow, UnreadableFile, rows

COLUMNS = ("system", "workload", "kind", "class", "started_at", "seconds", "bytes")
RunKind = Literal["application", "replay"]


class _RunKey(NamedTuple):
    """The rows of a run have the same key."""

    workload: str
    system: str
    kind: RunKind
    started_at_seconds: float


def read(file: str) -> dict[str, list[SystemRuns]]:
    """Return the runs in *file* by workload; each run has a row for each class of calls.

    Raises:
        UnreadableFile: the file is no CSV; a column is missing; a number is none, negative or infinite; a
            class occurs twice in a run; or a workload has one system only, no replay, or no two runs of the
            application on a system.
    """
    runs: dict[_RunKey, dict[str, IoTime]] = {}
    for row in rows(file, COLUMNS):
        key = _RunKey(row.text("workload"), row.text("system"), _kind(row), row.time_seconds("started_at"))
        classes = runs.setdefault(key, {})
        name = row.text("class")
        if name in classes:
            raise UnreadableFile(f"{row.place}: this {key.kind} already has a time of the class {name}")
        moved_bytes = _from_zero(row, "bytes") if row.cells["bytes"].strip() else None
        classes[name] = IoTime(_from_zero(row, "seconds"), moved_bytes)
    workloads = _by_workload(runs)
    for workload, systems in workloads.items():
        _check(file, workload, systems)
    return workloads


def _kind(row: CsvRow) -> RunKind:
    kind = row.text("kind")
    if kind not in ("application", "replay"):
        raise row.error("kind", "application or replay", kind)
    return cast("RunKind", kind)


def _from_zero(row: CsvRow, column: str) -> float:
    number = row.number(column)
    if number < 0.0:
        raise row.error(column, "a number from 0", row.cells[column])
    return number


def _by_workload(runs: Mapping[_RunKey, Mapping[str, IoTime]]) -> dict[str, list[SystemRuns]]:
    kinds: dict[str, dict[str, dict[RunKind, list[IoRun]]]] = {}
    for key in sorted(runs):
        systems = kinds.setdefault(key.workload, {})
        of_system = systems.setdefault(key.system, {"application": [], "replay": []})
        of_system[key.kind].append(IoRun(key.started_at_seconds, runs[key]))
    return {
        workload: [SystemRuns(name, own["application"], own["replay"]) for name, own in systems.items()]
        for workload, systems in kinds.items()
    }


def _check(file: str, workload: str, systems: list[SystemRuns]) -> None:
    if len(systems) < 2:
        reason = f"expected at least two systems, got {systems[0].name} for {workload}"
    elif not any(system.applications for system in systems):
        reason = f"expected runs of the application {workload}, got replays only"
    elif not any(system.replays for system in systems):
        reason = f"expected replays of {workload}, got runs of the application only"
    elif all(len(system.applications) < 2 for system in systems):
        reason = f"expected at least two runs of {workload} on a system, to see how much runs differ, got one"
    else:
        return
    raise UnreadableFile(f"{file}: {reason}")
