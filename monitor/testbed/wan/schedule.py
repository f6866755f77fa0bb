"""The weather of the emulated network: a daily load and occasional trouble of sites.

The functions depend only on a seed and the seconds since the epoch of the grid. As on the local grid, a day
takes 72 minutes. The figures are not from publications.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from monitor.testbed.wan.geography import HUB, uplink_mbit
from monitor.testbed.wan.links import EVERY_SITE, TableLine, link_line

STEP_SECONDS = 5
DAY_SECONDS = 4320.0
FINE_SECONDS = 240.0  # the first seconds, without any trouble
_BLOCK_SECONDS = 300  # a site has at most one trouble per block
_TROUBLE_CHANCE = 0.05
_TROUBLES = ("cut", "lossy", "slow")
_SHORTEST_SECONDS, _LONGEST_SECONDS = 30, 180
_SHARE_AT_PEAK = 0.4  # share of the uplink that other traffic leaves at midday
_JITTER_AT_PEAK_MS = 4.0
_LOSSY_PERCENT = 2.0
_SLOW_SHARE = 0.1


@dataclass(frozen=True)
class NetworkTrouble:
    """Trouble of a *site* from *begins* to *ends*, in seconds after the epoch.

    *kind* is "cut" (no packet passes), "lossy" or "slow".
    """

    site: str
    kind: str
    begins: float
    ends: float


def weather_lines(seed: int, seconds: float, sites: Sequence[str]) -> list[TableLine]:
    """Return the lines that the weather of *seed* adds to the link table at *seconds* after the epoch."""
    busy = _busy(seconds)
    lines = [_uplink(site, _share_left(seed, site, seconds)) for site in sites]
    lines.append(link_line(EVERY_SITE, EVERY_SITE, jitter_ms=round(0.2 + _JITTER_AT_PEAK_MS * busy, 2)))
    for trouble in troubles(seed, seconds, sites):
        lines += _effects(trouble)
    return lines


def troubles(seed: int, seconds: float, sites: Sequence[str]) -> list[NetworkTrouble]:
    """Return the troubles at *seconds* after the epoch. The hub has no trouble: the reporter runs there."""
    candidates = (_trouble(seed, site, int(seconds // _BLOCK_SECONDS)) for site in sites if site != HUB)
    return [trouble for trouble in candidates if trouble and trouble.begins <= seconds < trouble.ends]


def _trouble(seed: int, site: str, block: int) -> NetworkTrouble | None:
    """Return the trouble of *site* in the block of time number *block*; None without trouble."""
    chance = random.Random(f"{seed} {site} {block}")  # noqa: S311 - weather, not secrets
    if chance.random() >= _TROUBLE_CHANCE:
        return None
    lasts = chance.randint(_SHORTEST_SECONDS, _LONGEST_SECONDS)
    begins = block * _BLOCK_SECONDS + chance.randint(0, _BLOCK_SECONDS - lasts)
    if begins < FINE_SECONDS:
        return None
    return NetworkTrouble(site, chance.choice(_TROUBLES), begins, begins + lasts)


def _effects(trouble: NetworkTrouble) -> list[TableLine]:
    if trouble.kind == "slow":
        return [_uplink(trouble.site, _SLOW_SHARE)]
    loss_percent = 100.0 if trouble.kind == "cut" else _LOSSY_PERCENT
    both_ways = ((trouble.site, EVERY_SITE), (EVERY_SITE, trouble.site))
    return [link_line(*ends, loss_percent=loss_percent) for ends in both_ways]


def _uplink(site: str, share: float) -> TableLine:
    return TableLine("site", (site,), {"uplink_mbit": round(uplink_mbit(site) * share, 2)})


def _share_left(seed: int, site: str, seconds: float) -> float:
    """Return the share (0 to 1) of the uplink of *site* that other traffic leaves free.

    The share is smaller by day, and varies at random every five minutes.
    """
    noise = random.Random(f"{seed} {site} load {seconds // _BLOCK_SECONDS}").uniform(0.85, 1.0)  # noqa: S311
    return noise * (1 - (1 - _SHARE_AT_PEAK) * _busy(seconds))


def _busy(seconds: float) -> float:
    """Return the load, from 0 at midnight to 1 at midday; the epoch is six in the morning."""
    return (1 - math.cos(2 * math.pi * (seconds / DAY_SECONDS + 0.25))) / 2
