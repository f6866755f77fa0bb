"""A node's single disk with 35 MB/s, for 16 tasks.

The seconds of MADbench (16 tasks, 2.98 GB) by writers and readers, published and in virtual time, plus 43 s
that no table explains: 16/16 355, 359; 1/16 358, 344; 16/1 318, 318; 1/1 311, 313.
"""

from __future__ import annotations

from monitor.testbed.storage.profile import KIB, MIB, StorageProfile

PROFILE = StorageProfile(
    spindles=1,
    stripe_bytes=64 * KIB,
    allocation_bytes=8 * MIB,
    prefetch_bytes=868 * KIB,
    segments=21,
    seek_seconds=6.9e-3,
    rotation_seconds=8.2e-3,
    bytes_per_second=34.1e6,
    write_bytes_per_second=46.7e6,
    noise=0.02,
)
