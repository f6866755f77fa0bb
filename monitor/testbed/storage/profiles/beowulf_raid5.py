"""A RAID-5 of six disks that 16 nodes reach over a network.

The seconds of MADbench (16 tasks, 74.5 GB) by writers and readers, published and in virtual time, plus 460 s
that no table explains: 16/16 6353, 6043; 16/1 8690, 8167; 1/1 6973, 7000; 1/2 6406, 6888; 1/4 5741, 5781; 1/8
5627, 4975; 1/16 6131, 6453.
"""

from __future__ import annotations

from monitor.testbed.storage.profile import GIB, KIB, MIB, StorageProfile

PROFILE = StorageProfile(
    spindles=6,
    parity=1,
    stripe_bytes=128 * KIB,
    allocation_bytes=2 * MIB,
    capacity_bytes=8 * GIB,
    prefetch_bytes=300 * KIB,
    segments=12,
    seek_seconds=3.2e-3,
    rotation_seconds=5.1e-3,
    bytes_per_second=59.3e6,
    write_bytes_per_second=75.8e6,
    controller_bytes_per_second=80e6,
    request_seconds=25.4e-6,
    noise=0.02,
)
