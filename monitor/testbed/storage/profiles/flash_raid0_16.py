"""Sixteen drives of flash behind a RAID controller: 1.2 and 2.2 GB/s, 88,000 random reads a second.

The drives could read 562,000 times a second: the controller is the limit. The model's controller takes as
long for a write as for a read: it writes 2.2 GB/s, and 77,000 times a second at random (published: 3,749).
Source: figures measured in the flash thesis, chapter 4 (16 Intel X25-E, hardware RAID 0, stripes of 64 KiB).
"""

from __future__ import annotations

from monitor.testbed.storage.profile import KIB, StorageProfile

PROFILE = StorageProfile(
    spindles=160,
    stripe_bytes=4 * KIB,
    bytes_per_second=31e6,
    read_latency_seconds=100e-6,
    write_latency_seconds=750e-6,
    controller_bytes_per_second=2.2e9,
    controller_seconds=11e-6,
    noise=0.02,
)
