"""A drive of single-level cells of 2009: ten channels, 261 MB/s, 40,000 random reads and 11,000 writes a
second.

Source: figures measured in the flash thesis, chapter 4 (Intel X25-E, 64 GB).
"""

from __future__ import annotations

from monitor.testbed.storage.profile import KIB, StorageProfile

PROFILE = StorageProfile(
    spindles=10,
    stripe_bytes=4 * KIB,
    bytes_per_second=31e6,
    read_latency_seconds=100e-6,
    write_latency_seconds=750e-6,
    controller_bytes_per_second=261e6,
    noise=0.02,
)
