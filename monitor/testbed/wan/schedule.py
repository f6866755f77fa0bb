"""How the emulated network changes by itself: a daily curve of load, and now and then something broken.

Pure functions of a seed and the seconds since the grid began: equal arguments give equal weather. It is as
fast as the local grid's, whose day takes 72 minutes. Ours; nothing of it is published.
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
FINE_SECONDS = 240.0  # for somebody who looks for the first time
_BLOCK_SECONDS = 300  # in each, something happens to a site or nothing does
_TROUBLE_CHANCE = 0.05
_TROUBLES = ("cut", "lossy", "slow")
_SHORTEST_SECONDS, _LONGEST_SECONDS = 30, 180
_SHARE_AT_PEAK = 0.4  # of the uplink that others leave
_JITTER_AT_PEAK_MS = 4.0
_LOSSY_PERCENT = 2.0
_SLOW_SHARE = 0.1


@dataclass(frozen=True)
class NetworkTrouble:
    """What is wrong with *site*: "cut" (nothing passes), "lossy" or "slow"; from when to when, in seconds."""

    site: str
    kind: str
    begins: float
    ends: float


def weather_lines(seed: int, seconds: float, sites: Sequence[str]) -> list[TableLine]:
    """What the weather of *seed* changes of a link table, *seconds* after the grid began."""
    busy = _busy(seconds)
    lines = [_uplink(site, _share_left(seed, site, seconds)) for site in sites]
    lines.append(link_line(EVERY_SITE, EVERY_SITE, jitter_ms=round(0.2 + _JITTER_AT_PEAK_MS * busy, 2)))
    for trouble in troubles(seed, seconds, sites):
        lines += _effects(trouble)
    return lines


def troubles(seed: int, seconds: float, sites: Sequence[str]) -> list[NetworkTrouble]:
    """What is wrong at that moment. The hub never is: a reporter that is cut off sees nothing."""
    found = (_trouble(seed, site, int(seconds // _BLOCK_SECONDS)) for site in sites if site != HUB)
    return [trouble for trouble in found if trouble and trouble.begins <= seconds < trouble.ends]


def _trouble(seed: int, site: str, block: int) -> NetworkTrouble | None:
    """What happens to *site* in a block of time, if anything."""
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
    """How much of its uplink others leave *site*: less by day, and a little by luck of each five minutes."""
    luck = random.Random(f"{seed} {site} load {seconds // _BLOCK_SECONDS}").uniform(0.85, 1.0)  # noqa: S311
    return luck * (1 - (1 - _SHARE_AT_PEAK) * _busy(seconds))


def _busy(seconds: float) -> float:
    """From 0 at night to 1 in the middle of the day; the grid begins at six in the morning."""
    return (1 - math.cos(2 * math.pi * (seconds / DAY_SECONDS + 0.25))) / 2
