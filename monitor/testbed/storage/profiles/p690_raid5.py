"""A node's RAID-5 of six disks with 125 MB/s, for 16 tasks: four readers at once are best, sixteen take 45 %
longer (published: 40 %)."""

from __future__ import annotations

from monitor.testbed.storage.profile import GIB, KIB, MIB, StorageProfile

PROFILE = StorageProfile(
    spindles=6,
    parity=1,
    stripe_bytes=64 * KIB,
    allocation_bytes=8 * MIB,
    capacity_bytes=8 * GIB,
    prefetch_bytes=256 * KIB,
    segments=6,
    seek_seconds=3.6e-3,
    rotation_seconds=4e-3,
    bytes_per_second=60e6,
    write_bytes_per_second=50e6,
    controller_bytes_per_second=125e6,
    noise=0.02,
)
