"""The stages of a series as they are drawn: in order, each with its category and a shade of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import probes
from probes.base import ProbeError

SHADES = 3
OTHER = "other"  # a stage that the probe does not have any more


@dataclass(frozen=True)
class DrawnStage:
    """*shade* tells stages of one category apart: 1 to SHADES."""

    name: str
    category: str
    shade: int


def drawn(stages: Iterable[tuple[str, str]]) -> list[DrawnStage]:
    """Give every (name, category) its shade."""
    met: Counter[str] = Counter()
    shaded = []
    for name, category in stages:
        shaded.append(DrawnStage(name, category, met[category] % SHADES + 1))
        met[category] += 1
    return shaded


def of_probe(probe: str, measured: Iterable[str] = ()) -> list[DrawnStage]:
    """The stages of *probe* in their order, then those of *measured* that it has not (any more)."""
    try:
        known = [(stage.name, stage.category) for stage in probes.load(probe).stages]
    except ProbeError:
        known = []
    names = {name for name, _ in known}
    return drawn([*known, *((name, OTHER) for name in sorted(set(measured) - names))])
