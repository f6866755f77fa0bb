"""A map as SVG: places and links on the outlines of land, in an equirectangular projection."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.web.charts.world import outlines

WIDTH = 960
_LEAST_DEGREES = 8  # of the part of the world that is drawn
_STEPS = (30, 15, 10, 5, 2, 1)  # degrees between lines
_SQUARE = 64  # pixels, about the width of a label
_MOST_LABELS = 100  # on a picture of 960 pixels, more would be a carpet


@dataclass(frozen=True)
class _LabelSize:
    """The size of labels, and of the marks that they must not cover, on one kind of screen.

    Attributes:
        name: the class of the labels; map.css has the font and shows one of the two kinds.
        baseline: how far it is below the middle of a label.
        up, other: the radii of marks: what is not up is larger, so that colour is not needed.
    """

    name: str
    letter_width: float
    height: float
    baseline: float
    gap: float
    up: int
    other: int

    def radius(self, kind: str) -> int:
        return self.up if kind == "up" else self.other


_WIDE = _LabelSize("wide", letter_width=7.6, height=17, baseline=5, gap=5, up=7, other=11)
_NARROW = _LabelSize("narrow", letter_width=18, height=40, baseline=12, gap=10, up=16, other=20)


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

    @property
    def east(self) -> float:
        return self.west + WIDTH / self.scale

    @property
    def south(self) -> float:
        return self.north - self.height / self.scale / self.stretch

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
    return format_html(
        '<svg class="map" viewBox="0 0 {} {}" role="group" aria-label="Map of sites">'
        '<path class="land" d="{}"/><path class="border" d="{}"/><path class="graticule" d="{}"/>'
        "{}{}{}</svg>",
        WIDTH,
        round(frame.height),
        _outlines(frame, is_land=True),
        _outlines(frame, is_land=False),
        _graticule(frame),
        _degrees(frame),
        _drawn_links(links, by_name),
        SafeString("".join(_marks(places, by_name))),
    )


def _drawn_links(links: Sequence[DrawnLink], points: Mapping[str, tuple[float, float]]) -> SafeString:
    """Draw those of *links* between *points* as two paths, as there may be thousands: failing ones on top."""
    paths = {"l-working": "", "l-failing": ""}
    for link in links:
        if link.first in points and link.second in points:
            (x, y), (to_x, to_y) = points[link.first], points[link.second]
            paths["l-failing" if link.is_failing else "l-working"] += f"M{x} {y}L{to_x} {to_y}"
    return SafeString("".join(f'<path class="{kind}" d="{path}"/>' for kind, path in paths.items() if path))


def _marks(places: Sequence[Place], points: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """Yield the mark of each place with its label on wide and on narrow screens."""
    wide, narrow = (_labels(places, points, size) for size in (_WIDE, _NARROW))
    for place in places:
        x, y = points[place.name]
        yield (
            f'<a href="{escape(place.url)}" aria-label="{escape(place.name)}: {escape(place.words)}">'
            f'<circle class="m-{place.kind}" cx="{x}" cy="{y}" r="{_WIDE.radius(place.kind)}"/>'
            f"{wide.get(place.name, '')}{narrow.get(place.name, '')}</a>"
        )


def _labels(
    places: Sequence[Place], points: Mapping[str, tuple[float, float]], size: _LabelSize
) -> dict[str, str]:
    """Return the label of each place that has room for one: it covers no mark and no other label.

    Places that are not up come first.
    """
    taken = _TakenBoxes()
    for place in places:
        taken.add(place.name, _Box.around(*points[place.name], *[size.radius(place.kind)] * 2))
    labels: dict[str, str] = {}
    for place in sorted(places, key=lambda place: place.kind == "up")[:_MOST_LABELS]:
        for x, y, anchor, box in _positions(place, points[place.name], size):
            if box.is_inside and taken.is_free(place.name, box):
                taken.add(place.name, box)
                labels[place.name] = (
                    f'<text class="{size.name}" x="{x:.1f}" y="{y + size.baseline:.1f}"'
                    f' text-anchor="{anchor}">{escape(place.name)}</text>'
                )
                break
    return labels


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, x: float, y: float, half_width: float, half_height: float) -> _Box:
        return cls(x - half_width, y - half_height, x + half_width, y + half_height)

    @property
    def is_inside(self) -> bool:
        """Whether neither side of the picture cuts it off."""
        return self.left >= 0 and self.right <= WIDTH and self.top >= 0

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


class _TakenBoxes:
    """The boxes of marks and labels by the squares that they touch: a map may have thousands of them."""

    def __init__(self) -> None:
        self._by_square: dict[tuple[int, int], list[tuple[str, _Box]]] = defaultdict(list)

    def add(self, place: str, box: _Box) -> None:
        for square in self._squares(box):
            self._by_square[square].append((place, box))

    def is_free(self, place: str, box: _Box) -> bool:
        """Return whether *box* meets no box of another place than *place*."""
        return not any(
            owner != place and box.meets(taken)
            for square in self._squares(box)
            for owner, taken in self._by_square.get(square, ())
        )

    @staticmethod
    def _squares(box: _Box) -> Iterator[tuple[int, int]]:
        left, top, right, bottom = (int(edge // _SQUARE) for edge in box)
        return product(range(left, right + 1), range(top, bottom + 1))


def _positions(
    place: Place, point: tuple[float, float], size: _LabelSize
) -> Iterator[tuple[float, float, str, _Box]]:
    """Yield where a label may stand (x, middle in y, anchor) with the box it fills, the best first."""
    x, y = point
    width, middle, radius = len(place.name) * size.letter_width, size.height / 2, size.radius(place.kind)
    beside, above = radius + size.gap, radius + middle
    for dy in (-above, above):
        yield x, y + dy, "middle", _Box.around(x, y + dy, width / 2, middle)
    for dy in (0.0, -above / 2, above / 2, -above, above):
        yield x + beside, y + dy, "start", _Box.around(x + beside + width / 2, y + dy, width / 2, middle)
        yield x - beside, y + dy, "end", _Box.around(x - beside - width / 2, y + dy, width / 2, middle)


@lru_cache(maxsize=16)
def _outlines(frame: Frame, *, is_land: bool) -> str:
    """Return the path of the outlines that meet *frame*; the picture cuts what lies outside."""
    box = frame.west, frame.south, frame.east, frame.north
    shown = [each for each in outlines() if each.is_land == is_land and each.meets(*box)]
    lines = (
        "L".join(f"{x:.4g} {y:.4g}" for x, y in (frame.point(lat, lon) for lon, lat in each.points))
        for each in shown
    )
    return "".join(f"M{line}{'Z' if is_land else ''}" for line in lines)


def _lines(frame: Frame) -> tuple[range, range]:
    """Return the degrees of the meridians and parallels of the graticule."""
    width = frame.east - frame.west
    step = next((each for each in _STEPS if width / each >= 4), _STEPS[-1])
    meridians = range(math.ceil(frame.west / step) * step, math.ceil(frame.east), step)
    return meridians, range(math.ceil(frame.south / step) * step, math.ceil(frame.north), step)


def _graticule(frame: Frame) -> str:
    meridians, parallels = _lines(frame)
    down = [f"M{frame.point(0, degrees)[0]:.1f} 0V{frame.height:.0f}" for degrees in meridians]
    across = [f"M0 {frame.point(degrees, 0)[1]:.1f}H{WIDTH}" for degrees in parallels]
    return "".join([*down, *across])


def _degrees(frame: Frame) -> SafeString:
    """Label the graticule at the lower and the left edge."""
    meridians, parallels = _lines(frame)
    labels = [
        *((frame.point(0, each)[0] + 4, frame.height - 6, _angle(each, "EW")) for each in meridians),
        *((4, frame.point(each, 0)[1] - 4, _angle(each, "NS")) for each in parallels),
    ]
    texts = format_html_join(
        "", '<text x="{}" y="{}">{}</text>', ((f"{x:.0f}", f"{y:.0f}", text) for x, y, text in labels)
    )
    return format_html('<g class="degrees" aria-hidden="true">{}</g>', texts)


def _angle(degrees: int, signs: str) -> str:
    """Return *degrees* as ``90\N{DEGREE SIGN} W``; *signs* are those of positive and of negative ones."""
    return f"{abs(degrees)}\N{DEGREE SIGN}{f' {signs[degrees < 0]}' if degrees else ''}"


def words_of(counts: Mapping[str, int]) -> str:
    """Return *counts* by state as a text, such as ``5 up, 1 down``."""
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)
