"""What the network is like in good weather: delays by distance, uplinks by site. Ours, but plausible."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from monitor.testbed.wan.links import EVERY_SITE, TableLine, link_line

HUB = "hub"  # where the reporter is

# Latitude and longitude in degrees, uplink in Mbit/s.
_PLACES = {
    "anl": (41.7, -88.0, 200.0),
    "iu": (39.2, -86.5, 100.0),
    "ornl": (35.9, -84.3, 150.0),
    "tacc": (30.3, -97.7, 100.0),
    "purdue": (40.4, -86.9, 60.0),
    "ncsa": (40.1, -88.2, 400.0),
    "sdsc": (32.9, -117.2, 200.0),
    HUB: (39.8, -86.2, 400.0),  # Indianapolis, where the Global NOC is
}
_ELSEWHERE = (39.7, -104.9, 100.0)  # Denver, for sites that are not on the list
_EARTH_KILOMETRES = 6371.0
_KILOMETRES_PER_MS = 200.0  # light in a fibre
_DETOUR = 1.4  # no fibre is straight
_LEAST_DELAY_MS = 0.5


def good_weather(names: Sequence[str]) -> list[TableLine]:
    """The lines of a link table for these sites, the hub among them."""
    uplinks = [TableLine("site", (name,), {"uplink_mbit": uplink_mbit(name)}) for name in names]
    delays = [
        link_line(source, target, delay_ms=round(delay_ms(source, target), 1))
        for source, target in itertools.permutations(names, 2)
    ]
    return [*uplinks, *delays, link_line(EVERY_SITE, EVERY_SITE, jitter_ms=0.2)]


def uplink_mbit(name: str) -> float:
    """What *name* can send in all."""
    return _PLACES.get(name, _ELSEWHERE)[2]


def delay_ms(source: str, target: str) -> float:
    """One way between two sites, along a fibre with detours."""
    here, there = (_PLACES.get(name, _ELSEWHERE)[:2] for name in (source, target))
    travelled = _distance_kilometres(here, there) * _DETOUR / _KILOMETRES_PER_MS
    return max(_LEAST_DELAY_MS, travelled)


def _distance_kilometres(here: tuple[float, float], there: tuple[float, float]) -> float:
    """Along a great circle (haversine)."""
    (south, west), (north, east) = ([math.radians(angle) for angle in point] for point in (here, there))
    square = (
        math.sin((north - south) / 2) ** 2
        + math.cos(south) * math.cos(north) * math.sin((east - west) / 2) ** 2
    )
    return 2 * _EARTH_KILOMETRES * math.asin(math.sqrt(square))
