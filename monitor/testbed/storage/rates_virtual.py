"""Rates of an emulated device in virtual time: large sequential requests, and small random ones."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from monitor.testbed.storage import profiles
from monitor.testbed.storage.profile import GIB, KIB, MIB
from monitor.testbed.storage.virtual import VirtualStorage
from monitor.web.reports.published_storage import RATES, Rates

PROFILES_WITH_RATES: Sequence[str] = tuple(each.profile for each in RATES if each.profile)

FILE_BYTES = GIB
LARGE_BYTES = 4 * MIB
SMALL_BYTES, SMALL_REQUESTS = 4 * KIB, 20_000
IN_FLIGHT = 128  # of small requests: the rates of the published sweep grow no more with more
_FILE = 1


def virtual_rates(profile: str, library: Path) -> Rates:
    """Return the rates of *profile* by the compiled model *library*."""
    with VirtualStorage(library, profiles.load(profile)) as storage:
        return rates_of(storage)


def rates_of(storage: VirtualStorage) -> Rates:
    """Return the rates of an empty *storage*: it writes and reads a file, first in order, then at random."""
    large = range(0, FILE_BYTES, LARGE_BYTES)
    chance = random.Random(1)  # noqa: S311
    small = [SMALL_BYTES * chance.randrange(FILE_BYTES // SMALL_BYTES) for _ in range(SMALL_REQUESTS)]
    written = _end(storage, large, LARGE_BYTES, 0.0, is_write=True, in_flight=1)
    read = _end(storage, large, LARGE_BYTES, written, is_write=False, in_flight=1)
    rewritten = _end(storage, small, SMALL_BYTES, read, is_write=True, in_flight=IN_FLIGHT)
    found = _end(storage, small, SMALL_BYTES, rewritten, is_write=False, in_flight=IN_FLIGHT)
    return Rates(
        FILE_BYTES / written / 1e6,
        FILE_BYTES / (read - written) / 1e6,
        SMALL_REQUESTS / (rewritten - read),
        SMALL_REQUESTS / (found - rewritten),
    )


def _end(
    storage: VirtualStorage,
    offsets: Iterable[int],
    size: int,
    start_seconds: float,
    *,
    is_write: bool,
    in_flight: int,
) -> float:
    """Return when the last request ends; each one arrives when one of *in_flight* earlier ones has ended."""
    free = [start_seconds] * in_flight
    for offset in offsets:
        ended = storage.serve(_FILE, offset, size, is_write=is_write, arrival_seconds=free[0])
        heapq.heapreplace(free, ended)
    return max(free)
