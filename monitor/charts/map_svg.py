"""A map as SVG: places and links in an equirectangular projection, with a graticule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH = 960
_LEAST_DEGREES = 8  # of the part of the world that is drawn
_STEPS = (30, 15, 10, 5, 2, 1)  # degrees between lines


@dataclass(frozen=True)
class Place:
    """A place in degrees; *kind* is the class of its mark, *label* and *words* are shown and read."""

    name: str
    latitude: float
    longitude: float
    kind: str
    words: str
    url: str


@dataclass(frozen=True)
class DrawnLink:
    """A line between the places *first* and *second*, by name."""

    first: str
    second: str
    is_failing: bool


@dataclass(frozen=True)
class Frame:
    """The part of the world that is drawn, in degrees; *height* of the picture."""

    west: float
    north: float
    scale: float  # pixels per degree of longitude
    stretch: float  # of latitudes, so that distances in the middle are true
    height: float

    def point(self, latitude: float, longitude: float) -> tuple[float, float]:
        x = (longitude - self.west) * self.scale
        return round(x, 1), round((self.north - latitude) * self.scale * self.stretch, 1)


def frame_of(places: Sequence[Place]) -> Frame:
    """Return the frame around *places*, with a margin; the whole world if there are none."""
    if not places:
        return Frame(-180, 90, WIDTH / 360, 1, WIDTH / 2)
    lats, lons = [place.latitude for place in places], [place.longitude for place in places]
    middle = (min(lats) + max(lats)) / 2
    stretch = min(1 / max(math.cos(math.radians(middle)), 0.25), 2)
    width = max((max(lons) - min(lons)) * 1.25, _LEAST_DEGREES)
    height = max((max(lats) - min(lats)) * 1.4, width * 0.4 / stretch)
    west, north = (min(lons) + max(lons) - width) / 2, middle + height / 2
    return Frame(west, north, WIDTH / width, stretch, WIDTH / width * stretch * height)


def draw_map(places: Sequence[Place], links: Sequence[DrawnLink]) -> SafeString:
    """Draw *places* and the *links* between them; failing links are dashed and on top."""
    frame = frame_of(places)
    by_name = {place.name: frame.point(place.latitude, place.longitude) for place in places}
    shown = [link for link in links if link.first in by_name and link.second in by_name]
    shown.sort(key=lambda link: link.is_failing)
    lines = format_html_join(
        "",
        '<path class="{}" d="M{} {}L{} {}"/>',
        (
            ("l-failing" if link.is_failing else "l-working", *by_name[link.first], *by_name[link.second])
            for link in shown
        ),
    )
    marks = format_html_join(
        "",
        '<a href="{}" aria-label="{}: {}"><circle class="m-{}" cx="{}" cy="{}" r="{}"/>'
        '<text x="{}" y="{}" text-anchor="middle">{}</text></a>',
        (_mark(place, *by_name[place.name]) for place in places),
    )
    return format_html(
        '<svg class="map" viewBox="0 0 {} {}" role="group" aria-label="Map of sites">'
        '<path class="graticule" d="{}"/>{}{}</svg>',
        WIDTH,
        round(frame.height),
        _graticule(frame),
        lines,
        marks,
    )


def _mark(place: Place, x: float, y: float) -> tuple[object, ...]:
    label = round(y - 14, 1)  # above the mark
    return place.url, place.name, place.words, place.kind, x, y, _radius(place.kind), x, label, place.name


def _radius(kind: str) -> int:
    """Return the size of a mark: what is not up is larger, so that colour is not needed."""
    return 7 if kind == "up" else 11


def _graticule(frame: Frame) -> str:
    width, height = WIDTH / frame.scale, frame.height / frame.scale / frame.stretch
    step = next((each for each in _STEPS if width / each >= 4), _STEPS[-1])
    meridians = range(math.ceil(frame.west / step) * step, math.ceil(frame.west + width), step)
    south = frame.north - height
    parallels = range(math.ceil(south / step) * step, math.ceil(frame.north), step)
    down = [f"M{frame.point(0, degrees)[0]:.1f} 0V{frame.height:.0f}" for degrees in meridians]
    across = [f"M0 {frame.point(degrees, 0)[1]:.1f}H{WIDTH}" for degrees in parallels]
    return "".join([*down, *across])


def words_of(counts: Mapping[str, int]) -> str:
    """Return *counts* by state as a text, such as ``5 up, 1 down``."""
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)
