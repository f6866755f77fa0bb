"""Memory behind a file system: only its bandwidth limits."""

from __future__ import annotations

from monitor.testbed.storage.profile import StorageProfile

PROFILE = StorageProfile(spindles=1, stripe_bytes=1 << 20, bytes_per_second=4e9)
