"""Copies between resources: parameters, metrics, and copies verified by SHA-256."""

from __future__ import annotations

from probes.base import Measurement, Parameter, ProbeFailed, RunPlan
from probes.common import files, rates
from probes.grid import CopyOptions, Grid, Location, Transferred

COPY_PARAMETERS = {
    "parallel": Parameter(1, "maximum number of streams of one transfer, if its tool supports them", 1, 64),
    "block_bytes": Parameter(0, "size of one write of a transfer, bytes; 0 is the tool's default", 0, 1e9),
    "server_checksum": Parameter(False, "let the servers compare checksums during every transfer"),
}


def copy_options(plan: RunPlan) -> CopyOptions:
    """Return the options of copies from the values of ``COPY_PARAMETERS`` in *plan*."""
    return CopyOptions(
        streams=plan.integer("parallel"),
        block_bytes=plan.integer("block_bytes"),
        server_checksum=bool(plan.parameters["server_checksum"]),
    )


def transfer_metrics(name: str, copy: Transferred) -> list[Measurement]:
    """Return time, rate, streams and retries of *copy* as metrics whose names begin with *name*."""
    return [
        Measurement(f"{name}.seconds", copy.seconds, "seconds"),
        *rates.bytes_per_second(f"{name}.bytes_per_second", copy.bytes, copy.seconds),
        Measurement(f"{name}.streams", copy.streams, "count"),
        Measurement(f"{name}.retries", copy.retries, "count"),
    ]


def copy_verified(
    grid: Grid, source: Location, target: Location, options: CopyOptions, *, what: str, digest: str
) -> Transferred:
    """Copy a file and verify the copy; messages call the file *what*.

    Raises:
        ProbeFailed: the copy failed, or the SHA-256 of the target is not *digest*.
    """
    copy = grid.copy(source, target, options)
    target_digest = files.sha256(grid, target)
    if target_digest != digest:
        raise ProbeFailed(
            f"{what} arrived damaged at {target.resource}: SHA-256 {target_digest}, "
            f"{digest} when sent by {source.resource}",
            resource=target.resource,
        )
    return copy
