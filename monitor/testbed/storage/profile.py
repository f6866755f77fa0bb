"""The parameters of an emulated storage device. ``model.h`` has the same fields in the same order."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class StorageProfile:
    """Attributes as in ``ModelParameters`` of ``model.h``."""

    spindles: int
    parity: int = 0
    stripe_bytes: int = 64 * KIB
    allocation_bytes: int = 128 * KIB
    capacity_bytes: int = 4 * GIB
    prefetch_bytes: int = 0
    segments: int = 0
    cold_bytes: int = 0
    seed: int = 1
    seek_seconds: float = 0.0
    rotation_seconds: float = 0.0
    read_latency_seconds: float = 0.0
    write_latency_seconds: float = 0.0
    bytes_per_second: float = 1e9
    write_bytes_per_second: float = 0.0
    controller_bytes_per_second: float = 0.0
    controller_seconds: float = 0.0
    request_seconds: float = 0.0
    cold_seconds: float = 0.0
    noise: float = 0.0
