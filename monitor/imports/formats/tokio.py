"""TOKIO-abc: benchmarks that ran daily for a year on Cori and Mira (Lockwood, Snyder, Wang, Byna, Carns,
Wright: A Year in the Life of a Parallel File System, SC 2018; the data are at github.com/NERSC/tokio-abc).

A row is a run of an application or of IOR, with what Darshan and the system's monitors saw. Each (system,
file system, application) is a series; of IOR, each mode: which of the bytes read and written are more, and
whether they went to one shared file or to a file per process. Four things about these data one has to know:

- ``_datetime_start`` and ``_datetime_end`` are local times that were taken for others: by the errata on
  Mira, and on Cori they are as many hours off as its clock is from UTC. ``darshan_start_time`` is right in
  both.
- The header of Cori's file does not name its first column; see ``table``.
- Rows without ``_file_system`` ran in a burst buffer that is not told apart: they are left out.
- What monitors did not see is a zero, not a gap: traffic is kept only where anything was sampled. How full
  disks are is in percent in NERSC's columns (those with ``fshealth_ost_count``), and a ratio in Mira's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from monitor.imports.formats import table, text
from monitor.imports.formats.base import Example, Item, LeftOut, Malformed, Measured, Misfit, Option, stage
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
_OF_THE_RUN = {
    "darshan_agg_perf_by_slowest_posix": ("io.bytes_per_second", _MIB, "bytes_per_second"),
    "darshan_tot_bytes_read_posix": ("io.read.bytes", 1.0, "bytes"),
    "darshan_tot_bytes_written_posix": ("io.written.bytes", 1.0, "bytes"),
    "jobsdb_concurrent_jobs": ("system.jobs", 1.0, "count"),
    "jobsdb_concurrent_nodes": ("system.nodes", 1.0, "count"),
    "topology_job_max_radius": ("system.job_radius", 1.0, "count"),
}
_TRAFFIC = {
    "fs_tot_bytes_read": ("file_system.read.bytes", 1.0, "bytes"),
    "fs_tot_bytes_written": ("file_system.written.bytes", 1.0, "bytes"),
    "fs_tot_open_ops": ("file_system.opens", 1.0, "count"),
    "fs_ave_mds_cpu": ("file_system.metadata_cpu", 0.01, "ratio"),
    "fs_ave_oss_cpu": ("file_system.storage_cpu", 0.01, "ratio"),
}
_FULLNESS = {
    "fshealth_ost_most_full_pct": "file_system.fullest",
    "fshealth_ost_avg_full_pct": "file_system.full",
}


class Importer:
    summary = (
        "TOKIO-abc CSV: I/O benchmarks; a series for each system, file system and application or IOR mode."
    )
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
        for found in table.rows(stream, _NEEDED):
            if isinstance(found, Malformed):
                yield found
                continue
            where, row = found
            try:
                yield _item(where, row)
            except Misfit as misfit:
                yield misfit.at(where)


def _item(where: str, row: table.Row) -> Measured | LeftOut:
    file_system = row["_file_system"].strip()
    if not file_system:
        return LeftOut(where, "no file system is named")
    column = "darshan_start_time"
    slot = text.time(column, row[column].strip())
    column = "darshan_walltime"
    seconds = text.seconds(column, row[column].strip())
    application = _application(row)
    system, place = _place(file_system, row["darshan_app"].strip())
    parameters: dict[str, Value] = {
        "system": system,
        "file_system": file_system,
        "application": application,
        "processes": int(text.number("darshan_nprocs", row["darshan_nprocs"].strip())),
    }
    return Measured(
        where,
        slot,
        seconds,
        list(_metrics(row)),
        (stage("compute", "compute", seconds),),
        text.slug(f"{place}-{application}"),
        parameters,
        resource=text.slug(place),
        site=text.slug(system.partition("-")[0]),
    )


def _place(file_system: str, program: str) -> tuple[str, str]:
    """The system, and it with the file system. Cori's programs lie in directories that end in its
    partition."""
    found = _SYSTEM.search(program)
    system = found[1] if found else file_system.partition("-")[0]
    return system, file_system if file_system.startswith(system) else f"{system}-{file_system}"


def _application(row: table.Row) -> str:
    """The name of the program; of IOR with its mode, as in ``ior-shared-read``."""
    name = row["darshan_app"].strip().rpartition("/")[2]
    if not name:
        raise Misfit("darshan_app", "the path of a program", row["darshan_app"].strip())
    if name != "ior":
        return name
    moved = {way: _count(row, f"darshan_biggest_{way}_api_bytes") for way in ("read", "write")}
    way = max(moved, key=lambda one: moved[one])
    if not moved[way]:
        raise Misfit(f"darshan_biggest_{way}_api_bytes", "bytes that IOR read or wrote", "0")
    files = _count(row, f"darshan_biggest_{way}_api_files")
    return f"ior-{'fpp' if files > 1 else 'shared'}-{way}"


def _count(row: table.Row, column: str) -> float:
    return text.number(column, row[column].strip() or "0")


def _metrics(row: table.Row) -> Iterator[Measurement]:
    wanted = {**_OF_THE_RUN, **(_TRAFFIC if _was_sampled(row) else {})}
    for column, (name, factor, unit) in wanted.items():
        value = table.optional(row, column)
        if value is not None:
            yield Measurement(name, value * factor, unit)
    percent = 0.01 if "fshealth_ost_count" in row else 1.0
    for column, name in _FULLNESS.items():
        full = table.optional(row, column)
        if full is not None:
            yield Measurement(name, full * percent, "ratio")


def _was_sampled(row: table.Row) -> bool:
    """Whether monitors saw anything of the file system while it ran."""
    if "fs_monitoring_samples" in row:
        return bool(
            table.optional(row, "fs_monitoring_samples") or any(table.optional(row, one) for one in _TRAFFIC)
        )
    return table.optional(row, "fs_frac_missing") not in (None, 1.0)
