"""Compute days and store them, in parts whose slots fit into memory."""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import UTC, datetime, time

from monitor.analysis.availability import days_sql, results_sql
from monitor.analysis.availability.compute import DAY, LONGEST_VALID, WantedDay, compute

MOST_SLOTS = 5_000_000  # of a part: they take 200 bytes each


def compute_and_store(wanted: Collection[WantedDay], now: datetime) -> None:
    """Compute the *wanted* days and replace those that are stored, in the caller's transaction.

    The sites are computed in as many parts as the slots of all series need.
    """
    if not wanted:
        return
    first, last = min(each.day for each in wanted), max(each.day for each in wanted)
    since = datetime.combine(first, time(), UTC) - LONGEST_VALID
    slots = results_sql.count(since, datetime.combine(last, time(), UTC) + LONGEST_VALID + DAY)
    sites = sorted({each.site for each in wanted})
    parts = max(1, min(len(sites), math.ceil(slots / MOST_SLOTS)))
    for number in range(parts):
        in_part = set(sites[number::parts])
        days_sql.store(compute([each for each in wanted if each.site in in_part], now), now)
