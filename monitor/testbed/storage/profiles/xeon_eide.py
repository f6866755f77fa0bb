"""A workstation's single disk with 23 MB/s, and a write cache in its memory.

The seconds of MADbench (4 tasks, 1.1 GB) by writers and readers, published and in virtual time, plus 47 s
that no table explains: 4/4 243, 245; 1/4 235, 232; 4/1 199, 201; 1/1 189, 187.
"""

from __future__ import annotations

from monitor.testbed.storage.profile import KIB, MIB, StorageProfile

PROFILE = StorageProfile(
    spindles=1,
    stripe_bytes=256 * KIB,
    allocation_bytes=2 * MIB,
    prefetch_bytes=196 * KIB,
    segments=16,
    seek_seconds=8.4e-3,
    rotation_seconds=7.6e-3,
    bytes_per_second=20.1e6,
    write_bytes_per_second=52.8e6,
    noise=0.02,
)
