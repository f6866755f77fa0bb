"""The network in good weather: delays by distance, uplinks by site. The figures are plausible estimates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from monitor.testbed.wan.links import EVERY_SITE, TableLine, link_line

HUB = "hub"  # the end of the reporter

# Latitude and longitude in degrees, uplink in Mbit/s.
_PLACES = {
    "anl": (41.7, -88.0, 200.0),
    "iu": (39.2, -86.5, 100.0),
    "ornl": (35.9, -84.3, 150.0),
    "tacc": (30.3, -97.7, 100.0),
    "purdue": (40.4, -86.9, 60.0),
    "ncsa": (40.1, -88.2, 400.0),
    "sdsc": (32.9, -117.2, 200.0),
    HUB: (39.8, -86.2, 400.0),  # Indianapolis, seat of the Global NOC
}
_ELSEWHERE = (39.7, -104.9, 100.0)  # Denver, for all other sites
_EARTH_KILOMETRES = 6371.0
_KILOMETRES_PER_MS = 200.0  # light in a fibre
_DETOUR = 1.4  # fibre length over distance
_LEAST_DELAY_MS = 0.5


def good_weather(names: Sequence[str]) -> list[TableLine]:
    """Return the lines of a link table for the sites *names*, which include the hub."""
    uplinks = [TableLine("site", (name,), {"uplink_mbit": uplink_mbit(name)}) for name in names]
    delays = [
        link_line(source, target, delay_ms=round(delay_ms(source, target), 1))
        for source, target in itertools.permutations(names, 2)
    ]
    return [*uplinks, *delays, link_line(EVERY_SITE, EVERY_SITE, jitter_ms=0.2)]


def uplink_mbit(name: str) -> float:
    """Return the uplink rate of the site *name* in Mbit/s."""
    return _PLACES.get(name, _ELSEWHERE)[2]


def delay_ms(source: str, target: str) -> float:
    """Return the one-way delay in milliseconds between two sites, along a fibre with detours."""
    here, there = (_PLACES.get(name, _ELSEWHERE)[:2] for name in (source, target))
    travelled = _distance_kilometres(here, there) * _DETOUR / _KILOMETRES_PER_MS
    return max(_LEAST_DELAY_MS, travelled)


def _distance_kilometres(here: tuple[float, float], there: tuple[float, float]) -> float:
    """Return the great-circle distance of two points, given by latitude and longitude (haversine formula)."""
    (south, west), (north, east) = ([math.radians(angle) for angle in point] for point in (here, there))
    square = (
        math.sin((north - south) / 2) ** 2
        + math.cos(south) * math.cos(north) * math.sin((east - west) / 2) ** 2
    )
    return 2 * _EARTH_KILOMETRES * math.asin(math.sqrt(square))
