"""A node's RAID-5 of six disks with 125 MB/s, for 16 tasks: four readers at once are best.

How much longer MADbench (16 tasks, 11.9 GB) takes by readers, published and in virtual time with files read
512 KiB ahead: 1 over 13 %, 3 %; 2 below 2 %, .5 %; 16 40 %, 38 %. Without reading ahead, a reader that waits
for each 32 KiB keeps one disk busy: then 1 takes 14 % longer than 4, 2 24 %, 16 50 %.
"""

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
