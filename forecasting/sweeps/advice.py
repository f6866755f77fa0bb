"""What to set where, to limit streams as a sweep of streams says: one line a place."""

from __future__ import annotations

from collections.abc import Iterator

from forecasting.sweeps.sweet_spot import SweetSpot


def advice(spot: SweetSpot) -> list[str]:
    """Return the settings that limit streams to the best numbers of *spot*; why none, if no limit helps."""
    if spot.verdict == "does not help":
        return ["set no limit: it would save no time"]
    if spot.verdict == "undecided":
        needed = f": about {spot.passes_needed}" if spot.passes_needed else ""
        return [f"set no limit until more passes decide whether it helps{needed}"]
    return list(_limits(spot))


def _limits(spot: SweetSpot) -> Iterator[str]:
    readers, writers = spot.gain.streams
    yield (
        f"any program: gridcast-reporter tokens serve AREA --readers {readers} --writers {writers}, and "
        "gridcast-reporter tokens run -- PROGRAM"
    )
    reads = _hints("romio_cb_read", readers, spot.unlimited.readers)
    writes = _hints("romio_cb_write", writers, spot.unlimited.writers)
    yield (
        f"MPI-IO, collective calls only: the hints {reads} for files that are read, {writes} for files that "
        "are written (ROMIO_HINTS names a file with one `NAME VALUE` a line)"
    )
    yield (
        f"Slurm: Licenses=AREA:{min(readers, writers)} in slurm.conf, and sbatch --licenses=AREA:N for a job "
        "of N streams; it limits jobs, for their whole time, and not what other programs do"
    )
    yield (
        "one node with a disk (root): the scheduler bfq with low_latency 0 and slice_idle 8, and rotational "
        "1; with slice_idle 0, or for a device that does not rotate, bfq waits for no stream"
    )
    yield (
        "Lustre: no setting limits streams. NRS TBF limits RPCs a second, on each CPU partition of a server, "
        "and counts small and large RPCs alike; ORR orders RPCs by object and offset, which is nearer"
    )


def _hints(name: str, streams: int, tasks: int) -> str:
    return f"{name} enable, cb_nodes {streams}" if streams < tasks else f"{name} automatic"
