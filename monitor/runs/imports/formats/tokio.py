"""TOKIO-abc: benchmarks that ran daily for a year on Cori and Mira (Lockwood, Snyder, Wang, Byna, Carns,
Wright: A Year in the Life of a Parallel File System, SC 2018; the data are at github.com/NERSC/tokio-abc).

A row is a run of an application or of IOR, with the figures of Darshan and of the system's monitors. Each
(system, file system, application) is a series. IOR has one per mode: mainly read or mainly written, to one
shared file or to one file per process. The data have four peculiarities:

- ``_datetime_start`` and ``_datetime_end`` have a wrong time zone: on Mira by the errata, on Cori by the
  offset of its clock from UTC. ``darshan_start_time`` is correct in both files.
- The header of Cori's file does not name its first column; see ``table``.
- Rows without ``_file_system`` ran in a burst buffer that the data do not identify; they are skipped.
- Missing samples of the monitors are zeros, not gaps: traffic is imported only if anything was sampled. The
  fullness of disks is in percent in NERSC's columns (with ``fshealth_ost_count``), and a ratio in Mira's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from monitor.runs.imports.formats import table, text
from monitor.runs.imports.formats.base import (
    Example,
    ImportedRun,
    InvalidField,
    Item,
    MalformedRecord,
    Option,
    SkippedRecord,
    stage,
)
from probes.base import Measurement, Value

_MIB = 1024.0**2
_SYSTEM = re.compile(r"/bin\.([A-Za-z0-9_-]+)/[^/]+$")
_NEEDED = (
    "_file_system",
    "darshan_app",
    "darshan_start_time",
    "darshan_walltime",
    "darshan_nprocs",
    *(f"darshan_biggest_{way}_api_{what}" for way in ("read", "write") for what in ("bytes", "files")),
)
# column -> metric, factor, unit
_RUN_METRICS = {
    "darshan_agg_perf_by_slowest_posix": ("io.bytes_per_second", _MIB, "bytes_per_second"),
    "darshan_tot_bytes_read_posix": ("io.read.bytes", 1.0, "bytes"),
    "darshan_tot_bytes_written_posix": ("io.written.bytes", 1.0, "bytes"),
    "jobsdb_concurrent_jobs": ("system.jobs", 1.0, "count"),
    "jobsdb_concurrent_nodes": ("system.nodes", 1.0, "count"),
    "topology_job_max_radius": ("system.job_radius", 1.0, "count"),
}
_TRAFFIC_METRICS = {
    "fs_tot_bytes_read": ("file_system.read.bytes", 1.0, "bytes"),
    "fs_tot_bytes_written": ("file_system.written.bytes", 1.0, "bytes"),
    "fs_tot_open_ops": ("file_system.opens", 1.0, "count"),
    "fs_ave_mds_cpu": ("file_system.metadata_cpu", 0.01, "ratio"),
    "fs_ave_oss_cpu": ("file_system.storage_cpu", 0.01, "ratio"),
}
_FULLNESS_METRICS = {
    "fshealth_ost_most_full_pct": "file_system.fullest",
    "fshealth_ost_avg_full_pct": "file_system.full",
}


class Importer:
    summary = "TOKIO-abc CSV: I/O benchmarks; one series per system, file system and application or IOR mode."
    measures = "grid"
    options: Mapping[str, Option] = {}
    example = Example(
        b"_file_system,darshan_app,darshan_start_time,darshan_walltime,darshan_nprocs,"
        b"darshan_biggest_read_api_bytes,darshan_biggest_read_api_files,"
        b"darshan_biggest_write_api_bytes,darshan_biggest_write_api_files\n"
        b"fs1,/home/bench/bin.alpha/hacc_io_write,1487381283,8,512,0,0,52613349376,512\n"
        b",/home/bench/bin.alpha/hacc_io_read,1487381303,6,512,52613349376,512,0,0\n"
        b"fs1,/home/bench/bin.alpha/ior,1487381400,61,512,1099511627776,1,14073856,1\n"
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        pass

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        for line in table.rows(stream, _NEEDED):
            if isinstance(line, MalformedRecord):
                yield line
                continue
            where, row = line
            try:
                yield _item(where, row)
            except InvalidField as error:
                yield error.at(where)


def _item(where: str, row: table.CsvRow) -> ImportedRun | SkippedRecord:
    file_system = row["_file_system"].strip()
    if not file_system:
        return SkippedRecord(where, "the file system is unknown")
    column = "darshan_start_time"
    slot = text.time(column, row[column].strip())
    column = "darshan_walltime"
    seconds = text.seconds(column, row[column].strip())
    application = _application(row)
    system, location = _location(file_system, row["darshan_app"].strip())
    parameters: dict[str, Value] = {
        "system": system,
        "file_system": file_system,
        "application": application,
        "processes": int(text.number("darshan_nprocs", row["darshan_nprocs"].strip())),
    }
    return ImportedRun(
        where,
        slot,
        seconds,
        list(_metrics(row)),
        (stage("compute", "compute", seconds),),
        text.slug(f"{location}-{application}"),
        parameters,
        resource=text.slug(location),
        site=text.slug(system.partition("-")[0]),
    )


def _location(file_system: str, program: str) -> tuple[str, str]:
    """Return (system, system and file system) of a run of *program*.

    On Cori, the directory of a program ends in the name of its partition.
    """
    match = _SYSTEM.search(program)
    system = match[1] if match else file_system.partition("-")[0]
    return system, file_system if file_system.startswith(system) else f"{system}-{file_system}"


def _application(row: table.CsvRow) -> str:
    """Return the name of the program; the name of IOR has its mode, as in ``ior-shared-read``."""
    name = row["darshan_app"].strip().rpartition("/")[2]
    if not name:
        raise InvalidField("darshan_app", "the path of a program", row["darshan_app"].strip())
    if name != "ior":
        return name
    moved_bytes = {way: _count(row, f"darshan_biggest_{way}_api_bytes") for way in ("read", "write")}
    way = max(moved_bytes, key=lambda way: moved_bytes[way])
    if not moved_bytes[way]:
        raise InvalidField(f"darshan_biggest_{way}_api_bytes", "bytes that IOR read or wrote", "0")
    files = _count(row, f"darshan_biggest_{way}_api_files")
    return f"ior-{'fpp' if files > 1 else 'shared'}-{way}"


def _count(row: table.CsvRow, column: str) -> float:
    return text.number(column, row[column].strip() or "0")


def _metrics(row: table.CsvRow) -> Iterator[Measurement]:
    columns = {**_RUN_METRICS, **(_TRAFFIC_METRICS if _was_sampled(row) else {})}
    for column, (name, factor, unit) in columns.items():
        value = table.optional(row, column)
        if value is not None:
            yield Measurement(name, value * factor, unit)
    percent = 0.01 if "fshealth_ost_count" in row else 1.0
    for column, name in _FULLNESS_METRICS.items():
        fullness = table.optional(row, column)
        if fullness is not None:
            yield Measurement(name, fullness * percent, "ratio")


def _was_sampled(row: table.CsvRow) -> bool:
    """Return whether monitors sampled the file system during the run."""
    if "fs_monitoring_samples" in row:
        return bool(
            table.optional(row, "fs_monitoring_samples")
            or any(table.optional(row, column) for column in _TRAFFIC_METRICS)
        )
    return table.optional(row, "fs_frac_missing") not in (None, 1.0)
