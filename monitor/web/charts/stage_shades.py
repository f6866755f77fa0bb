"""Colours of stages: by category, with a different shade for each stage of a category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import probes
from probes.base import ProbeError

SHADES = 8
OTHER = "other"  # the category of stages that no probe has


@dataclass(frozen=True)
class DrawnStage:
    """A stage and its *shade*, 1 to ``SHADES``, which distinguishes the stages of a category."""

    name: str
    category: str
    shade: int


def drawn(stages: Iterable[tuple[str, str]]) -> list[DrawnStage]:
    """Return each of *stages*, given as (name, category), with a shade."""
    counts: Counter[str] = Counter()
    shaded = []
    for name, category in stages:
        shaded.append(DrawnStage(name, category, counts[category] % SHADES + 1))
        counts[category] += 1
    return shaded


def of_probe(probe: str, measured_stages: Iterable[str] = ()) -> list[DrawnStage]:
    """Return the stages of *probe* in order, followed by those *measured_stages* that *probe* lacks."""
    try:
        stages = [(stage.name, stage.category) for stage in probes.load(probe).stages]
    except ProbeError:
        stages = []
    others = sorted(set(measured_stages) - {name for name, _ in stages})
    return drawn([*stages, *((name, _usual_categories().get(name, OTHER)) for name in others)])


@cache
def _usual_categories() -> dict[str, str]:
    """Return the categories of the stages of installed probes by name: imported runs have such names, too."""
    return {stage.name: stage.category for probe in probes.names() for stage in probes.load(probe).stages}


def measured(metrics: Iterable[str]) -> list[str]:
    """Return the stages whose durations are among *metrics*."""
    names = [name for name in metrics if name.startswith("stage.") and name.endswith(".seconds")]
    return [name.removeprefix("stage.").removesuffix(".seconds") for name in names]
