"""Copies between resources: their parameters, their metrics, and copies verified by SHA-256."""

from __future__ import annotations

from probes.base import Measurement, Parameter, ProbeFailed, RunPlan
from probes.common import files, rates
from probes.grid import CopyOptions, Grid, Location, Transferred

COPY_PARAMETERS = {
    "parallel": Parameter(1, "streams that one transfer may use, where its tool can", 1, 64),
    "block_bytes": Parameter(0, "size of one write of a transfer, bytes; 0 is the tool's own", 0, 1e9),
    "server_checksum": Parameter(False, "let the servers compare checksums as a part of every transfer"),
}


def copy_options(plan: RunPlan) -> CopyOptions:
    """What ``COPY_PARAMETERS`` say."""
    return CopyOptions(
        streams=plan.integer("parallel"),
        block_bytes=plan.integer("block_bytes"),
        server_checksum=bool(plan.parameters["server_checksum"]),
    )


def transfer_metrics(name: str, copy: Transferred) -> list[Measurement]:
    """Time, rate, streams and retries of one copy, or of several at once."""
    return [
        Measurement(f"{name}.seconds", copy.seconds, "seconds"),
        *rates.bytes_per_second(f"{name}.bytes_per_second", copy.bytes, copy.seconds),
        Measurement(f"{name}.streams", copy.streams, "count"),
        Measurement(f"{name}.retries", copy.retries, "count"),
    ]


def copy_verified(
    grid: Grid, source: Location, target: Location, options: CopyOptions, *, what: str, sent_as: str
) -> Transferred:
    """Copy *what* from *source* to *target*; raise ProbeFailed unless it has the SHA-256 *sent_as* there."""
    copy = grid.copy(source, target, options)
    arrived = files.sha256(grid, target)
    if arrived != sent_as:
        raise ProbeFailed(
            f"{what} arrived damaged at {target.resource}: SHA-256 {arrived}, "
            f"sent by {source.resource} as {sent_as}",
            resource=target.resource,
        )
    return copy
