"""Link tables: the properties of the emulated network as text, which may change at any time.

::

    queue bytes=2000000                      # before each bottleneck; excess packets are dropped
    site anl uplink_mbit=100                 # for all packets of the site; 0: no limit
    link * * delay_ms=20 jitter_ms=1         # one direction; *: every site
    link anl sdsc delay_ms=31 loss_percent=0.01 rate_mbit=50

A later line overrides only the figures that it names; the other figures of earlier lines stay.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from monitor.testbed.errors import TestbedError

EVERY_SITE = "*"
DEFAULT_QUEUE_BYTES = 2_000_000
BYTES_PER_MBIT = 125_000.0

# Figure of a line -> the field of LinkProperties, and the factor to its unit.
_LINK_FIGURES = {
    "delay_ms": ("delay_seconds", 1e-3),
    "jitter_ms": ("jitter_seconds", 1e-3),
    "loss_percent": ("loss", 1e-2),
    "rate_mbit": ("bytes_per_second", BYTES_PER_MBIT),
}
# Kind of line -> its number of names, and its figures.
_KINDS = {"queue": (0, ("bytes",)), "site": (1, ("uplink_mbit",)), "link": (2, tuple(_LINK_FIGURES))}


class BadLinkTable(TestbedError):
    """A line of a link table cannot be parsed, or names an unknown site."""


@dataclass(frozen=True)
class LinkProperties:
    """Properties of one direction between two sites.

    Attributes:
        jitter_seconds: most seconds by which a packet's delay differs from ``delay_seconds``; packets stay
            in order.
        loss: share of lost packets, 0 to 1.
        bytes_per_second: rate of the link; 0 is no limit.
    """

    delay_seconds: float = 0.0
    jitter_seconds: float = 0.0
    loss: float = 0.0
    bytes_per_second: float = 0.0


@dataclass(frozen=True)
class TableLine:
    """One line of a link table.

    Attributes:
        kind: "queue", "site" or "link".
        names: the sites to which the line applies; "*" is every site.
        figures: values by name; each name ends with its unit.
    """

    kind: str
    names: tuple[str, ...]
    figures: Mapping[str, float]

    def __str__(self) -> str:
        figures = (f"{name}={value:.10g}" for name, value in self.figures.items())
        return " ".join([self.kind, *self.names, *figures])


@dataclass(frozen=True)
class LinkTable:
    """The whole network.

    Attributes:
        links: properties of each link by (source, target).
        uplinks: rate of each site's uplink in bytes per second, 0 for no limit, by the name of the site.
        queue_bytes: size of the queue before each bottleneck.
    """

    links: Mapping[tuple[str, str], LinkProperties]
    uplinks: Mapping[str, float]
    queue_bytes: int = DEFAULT_QUEUE_BYTES
    sites: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, sites: Sequence[str], lines: Iterable[TableLine]) -> LinkTable:
        """Return the table of *sites* after all *lines* in order.

        Raises:
            BadLinkTable: a line names an unknown site.
        """
        links = dict.fromkeys(itertools.permutations(sites, 2), LinkProperties())
        uplinks = dict.fromkeys(sites, 0.0)
        queue_bytes = DEFAULT_QUEUE_BYTES
        for line in lines:
            chosen = [_matching(name, sites) for name in line.names]
            if line.kind == "queue":
                queue_bytes = int(line.figures["bytes"])
            elif line.kind == "site":
                uplinks.update(dict.fromkeys(chosen[0], line.figures["uplink_mbit"] * BYTES_PER_MBIT))
            else:
                for pair in links:
                    if pair[0] in chosen[0] and pair[1] in chosen[1]:
                        links[pair] = _changed(links[pair], line.figures)
        return cls(links, uplinks, queue_bytes, tuple(sites))


def link_line(source: str, target: str, **figures: float | None) -> TableLine:
    """Return a line for the link from *source* to *target*; *figures* with the value None are left out.

    Raises:
        BadLinkTable: a figure is out of bounds.
    """
    given = {name: value for name, value in figures.items() if value is not None}
    return _checked("link", (source, target), given, "")


def parse_lines(text: str, origin: str = "") -> list[TableLine]:
    """Parse the lines of a table; *origin* is the name of its file, for error messages.

    Raises:
        BadLinkTable: a line cannot be parsed.
    """
    return [
        _parsed(words, f"{origin}:{number}: " if origin else f"line {number}: ")
        for number, line in enumerate(text.splitlines(), 1)
        if (words := line.partition("#")[0].split())
    ]


def format_lines(lines: Iterable[TableLine]) -> str:
    """Return *lines* as the text that ``parse_lines`` parses."""
    return "".join(f"{line}\n" for line in lines)


def _parsed(words: Sequence[str], where: str) -> TableLine:
    kind, *rest = words
    names = tuple(word for word in rest if "=" not in word)
    figures = {}
    for word in rest:
        name, equals, text = word.partition("=")
        if equals:
            figures[name] = _number(text, f"{where}{name}")
    return _checked(kind, names, figures, where)


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise BadLinkTable(f"{where}: expected a number from 0 on, got {text!r}")
    return value


def _checked(kind: str, names: tuple[str, ...], figures: Mapping[str, float], where: str) -> TableLine:
    if kind not in _KINDS:
        raise BadLinkTable(f"{where}unknown kind of line {kind!r}; known are {', '.join(_KINDS)}")
    name_count, valid = _KINDS[kind]
    if len(names) != name_count:
        raise BadLinkTable(f"{where}{kind!r} takes {name_count} names, got {len(names)}")
    unknown = sorted(set(figures) - set(valid))
    if unknown or not figures:
        got = f"unknown {unknown[0]!r}" if unknown else "no figure"
        raise BadLinkTable(f"{where}{got}; {kind!r} takes {', '.join(valid)}")
    for name, value in figures.items():
        _number(str(value), f"{where}{name}")
    if figures.get("loss_percent", 0.0) > 100.0:
        raise BadLinkTable(f"{where}loss_percent: at most 100, got {figures['loss_percent']:g}")
    return TableLine(kind, names, figures)


def _matching(name: str, sites: Sequence[str]) -> tuple[str, ...]:
    if name != EVERY_SITE and name not in sites:
        raise BadLinkTable(f"there is no site {name!r} in the network; it has {', '.join(sites)}")
    return tuple(sites) if name == EVERY_SITE else (name,)


def _changed(link: LinkProperties, figures: Mapping[str, float]) -> LinkProperties:
    changes = {}
    for name, value in figures.items():
        field_name, unit = _LINK_FIGURES[name]
        changes[field_name] = value * unit
    return dataclasses.replace(link, **changes)
