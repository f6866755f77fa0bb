"""The combinations of a storage sweep: what is measured, and under which name."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from probes.base import InvalidParameters, Parameter, RunPlan
from probes.common.passes import design_digest
from probes.common.privileged import PrivilegedFactor

MOST_COMBINATIONS = 100_000
_MOST_NAME = 200  # characters of a metric's name
_LARGEST_REQUEST, _MOST_DEPTH, _MOST_TASKS = 1 << 30, 1024, 256

# Each factor: its levels are a text with commas. A factor with whole numbers has their limits.
FACTORS = {
    "request_bytes": Parameter("4096,1048576", "sizes of requests, bytes, separated by commas"),
    "pattern": Parameter(
        "sequential,random", "of sequential, random, random-seek (eight requests after a seek)"
    ),
    "queue_depth": Parameter("1,16", "requests in flight of a task"),
    "direction": Parameter("read,write", "of read, write"),
    "cache": Parameter("direct", "of direct, cached: cached needs data of twice the memory"),
    "file": Parameter("own", "of own, shared: whether tasks share a file"),
    "tasks": Parameter("1", "processes that read or write at once"),
}
_NUMBERS = {"request_bytes": _LARGEST_REQUEST, "queue_depth": _MOST_DEPTH, "tasks": _MOST_TASKS}
_CHOICES = {
    "pattern": ("sequential", "random", "random-seek"),
    "direction": ("read", "write"),
    "cache": ("direct", "cached"),
    "file": ("own", "shared"),
}


@dataclass(frozen=True)
class Combination:
    """One level of each factor. *privileged* has those that the operator's commands set."""

    request_bytes: int
    pattern: str
    queue_depth: int
    direction: str
    cache: str
    file: str
    tasks: int
    privileged: Mapping[str, str]

    @property
    def is_direct(self) -> bool:
        return self.cache == "direct"

    @property
    def layout(self) -> FileLayout:
        return FileLayout(1 if self.file == "shared" else self.tasks)

    def levels(self) -> dict[str, str]:
        """Return the level of each factor, as in the names of metrics."""
        return {**{name: str(getattr(self, name)) for name in FACTORS}, **self.privileged}

    def metric(self) -> str:
        levels = ",".join(f"{name}={level}" for name, level in self.levels().items())
        return f"sweep.{levels}.bytes_per_second"


@dataclass(frozen=True, order=True)
class FileLayout:
    """The same data in *files* files."""

    files: int


def combinations(plan: RunPlan, privileged: Sequence[PrivilegedFactor]) -> list[Combination]:
    """Return the combinations of the plan's levels; if ``share`` is below 1, a part that the seed chooses.

    Raises:
        InvalidParameters: a level is unknown or occurs twice, or there are too many combinations.
    """
    levels = {name: _levels(name, plan.text(name)) for name in FACTORS}
    others = {factor.name: factor.levels for factor in privileged}
    if clash := sorted(others.keys() & levels.keys()):
        raise InvalidParameters(f"settings: {clash[0]} is a parameter of the probe")
    names, axes = [*levels, *others], [*levels.values(), *others.values()]
    possible = 1
    for axis in axes:
        possible *= len(axis)
    if possible > MOST_COMBINATIONS:
        raise InvalidParameters(f"{possible} combinations are more than {MOST_COMBINATIONS}")
    chosen = [_combination(dict(zip(names, cell)), others) for cell in product(*axes)]
    share = float(plan.parameters["share"])
    if share < 1.0:
        count = max(1, round(share * possible))
        numbers = random.Random(plan.integer("seed")).sample(range(possible), count)  # noqa: S311
        chosen = [chosen[number] for number in sorted(numbers)]
    if too_long := [each.metric() for each in chosen if len(each.metric()) > _MOST_NAME]:
        raise InvalidParameters(f"settings: names and levels are too long for a metric: {too_long[0]}")
    return chosen


def digest(plan: RunPlan, chosen: Sequence[Combination]) -> str:
    """Return a digest of all that decides what a sweep measures."""
    others = [plan.parameters[name] for name in ("file_bytes", "seconds", "passes", "seed", "tool", "engine")]
    return design_digest([[each.metric() for each in chosen], others])


def _combination(levels: Mapping[str, str], others: Mapping[str, object]) -> Combination:
    return Combination(
        request_bytes=int(levels["request_bytes"]),
        pattern=levels["pattern"],
        queue_depth=int(levels["queue_depth"]),
        direction=levels["direction"],
        cache=levels["cache"],
        file=levels["file"],
        tasks=int(levels["tasks"]),
        privileged={name: levels[name] for name in others},
    )


def _levels(name: str, text: str) -> list[str]:
    levels = [part.strip() for part in text.split(",")]
    if name in _NUMBERS:
        levels = [_number(name, level) for level in levels]
    for level in levels:
        if name in _CHOICES and level not in _CHOICES[name]:
            raise InvalidParameters(f"{name}: expected one of {', '.join(_CHOICES[name])}, got {level!r}")
    if len(set(levels)) < len(levels):
        raise InvalidParameters(f"{name}: a level occurs twice in {text!r}")
    return levels


def _number(name: str, text: str) -> str:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
    if not 1 <= number <= _NUMBERS[name]:
        raise InvalidParameters(f"{name}: expected whole numbers from 1 to {_NUMBERS[name]}, got {text!r}")
    if name == "request_bytes" and number % 512:
        raise InvalidParameters(f"{name}: expected multiples of 512, got {text!r}")
    return str(number)
