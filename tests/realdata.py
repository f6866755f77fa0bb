"""Measurements of others, where their files are: runs of TOKIO-abc and of the Azure VM noise study, and
outages.

The files are not part of this project. Who needs one asks ``missing`` first.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import tarfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from forecasting.base import Source
from forecasting.elsewhere.runs import IoRun, IoTime, SystemRuns
from forecasting.reading import swf
from forecasting.reading.histories import Kind, RunHistory
from forecasting.series import Observation
from monitor.runs.imports.formats.base import ImportedRun
from monitor.runs.imports.formats.tokio import Importer as Tokio

DATA = Path(__file__).parents[2] / "shared" / "data"
TOKIO = (
    DATA / "tokio-abc" / "cori-summaries_2017-02-14-2018-02-15.csv.gz",
    DATA / "tokio-abc" / "mira-summaries_2017-02-14_2018-02-15.csv.gz",
)
AZURE = DATA / "azure-vm-noise" / "azure-vm-noise-eastus.tar.gz"
OUTAGES = DATA / "lanl-failures" / "LA-UR-05-7318-failure-data-1996-2005.csv.gz"
QUEUES = tuple(
    DATA / "swf-pwa" / name for name in ("CTC-SP2-1996-3.1-cln.swf.gz", "HPC2N-2002-2.2-cln.swf.gz")
)
Row = tuple[str, str, Kind, Observation]
_REPLAYED_BY = {  # applications of TOKIO, and the mode of IOR that is most like them
    "hacc_io_read": "ior-fpp-read",
    "hacc_io_write": "ior-fpp-write",
    "vpicio_uni": "ior-shared-write",
    "dbscan_read": "ior-shared-read",
}
_AZURE_APPLICATIONS = ("PostgreSQL", "Redis")


def missing(*files: Path) -> str:
    """Why *files* cannot be read; empty if they can."""
    absent = [file.name for file in files if not file.exists()]
    return f"not on this machine: {', '.join(absent)}" if absent else ""


@functools.cache
def tokio() -> list[RunHistory]:
    """24 series of about 320 runs: the seconds that four applications and four modes of IOR took each day."""
    return _histories(map(_of_tokio, _tokio_runs()))


@functools.cache
def tokio_io() -> dict[str, list[SystemRuns]]:
    """The input and output of four applications on three systems, with IOR as their replay: the time of the
    slowest process, and the bytes of all."""
    runs: dict[tuple[str, str], list[IoRun]] = {}
    for run in _tokio_runs():
        metrics = {metric.name: metric.value for metric in run.metrics}
        moved = metrics.get("io.read.bytes", 0.0) + metrics.get("io.written.bytes", 0.0)
        if rate := metrics.get("io.bytes_per_second"):
            calls = {"calls": IoTime(moved / rate, moved)}
            name = str(run.parameters["application"])
            runs.setdefault((run.resource, name), []).append(IoRun(run.slot.timestamp(), calls))
    for own in runs.values():
        own.sort(key=lambda run: run.started_at_seconds)
    resources = sorted({resource for resource, _ in runs})
    return {
        application: [
            SystemRuns(resource, runs[resource, application], runs[resource, replay])
            for resource in resources
        ]
        for application, replay in _REPLAYED_BY.items()
    }


def _tokio_runs() -> Iterator[ImportedRun]:
    for file in TOKIO:
        with gzip.open(file, "rb") as stream:
            items = list(Tokio({}).read(io.BytesIO(stream.read())))
        yield from (item for item in items if isinstance(item, ImportedRun))


def _of_tokio(run: ImportedRun) -> Row:
    name = str(run.parameters["application"])
    began = run.slot.timestamp()
    kind: Kind = "probe" if name.startswith("ior-") else "application"
    return run.resource, name, kind, Observation(began, began + run.seconds, run.seconds)


@functools.cache
def jobs() -> list[RunHistory]:
    """The run times of the completed jobs of each user of two batch logs."""
    return _histories(
        (log.name, job.user, "application", Observation(start, start + run_seconds, run_seconds))
        for log in QUEUES
        for job, begin in swf.jobs(str(log))
        if job.status in (swf.COMPLETED, swf.UNKNOWN_STATUS)
        and None not in (job.submitted_seconds, job.wait_seconds, job.run_seconds)
        for run_seconds in [job.run_seconds or 0.0]
        for start in [begin + (job.submitted_seconds or 0.0) + (job.wait_seconds or 0.0)]
    )


@functools.cache
def azure() -> list[RunHistory]:
    """About a hundred series of 1,200 to 5,300 runs: what benchmarks showed on six virtual machines."""
    with tarfile.open(AZURE) as archive:
        members = sorted(
            (member for member in archive if member.name.endswith(".csv")), key=lambda member: member.name
        )
        return _histories(row for member in members for row in _of_azure(archive, member))


def _of_azure(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[Row]:
    labels = dict(part.split("=", 1) for part in member.name.split("/")[1:-1])
    suite, machine = labels["test_suite"], labels["vm_sku"]
    kind: Kind = "application" if suite in _AZURE_APPLICATIONS else "probe"
    stream = archive.extractfile(member)
    assert stream is not None
    for row in csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8")):
        began = _seconds(row["starttime"])
        observation = Observation(began, began + float(row["runtime"] or 0.0), float(row["value"]))
        yield f"{machine}-{row['VM_id']}", f"{suite}/{labels['test_name']}", kind, observation


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _histories(rows: Iterable[Row]) -> list[RunHistory]:
    histories: dict[tuple[str, str], RunHistory] = {}
    for group, name, kind, observation in rows:
        history = histories.setdefault((group, name), RunHistory(group, Source(name, ""), kind))
        history.observations.append(observation)
    for history in histories.values():
        history.observations.sort(
            key=lambda observation: (
                observation.time_seconds,
                observation.known_at_seconds,
                observation.value,
            )
        )
    return [histories[key] for key in sorted(histories)]


def outages(nodes: int) -> list[list[tuple[float, float]]]:
    """When those *nodes* of LANL's clusters were down that failed most often: seconds from and to, in
    order."""
    values: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with gzip.open(OUTAGES, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["Prob Started"] and row["Prob Fixed"]:
                outage = _american(row["Prob Started"]), _american(row["Prob Fixed"])
                values.setdefault((row["System"], row["nodenum"]), []).append(outage)
    worst = sorted(values, key=lambda node: (-len(values[node]), node))
    return [sorted(values[node]) for node in worst[:nodes]]


def _american(text: str) -> float:
    return datetime.strptime(text, "%m/%d/%Y %H:%M").replace(tzinfo=UTC).timestamp()
