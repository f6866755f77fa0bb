"""Passes of a sweep over several runs: which combination is measured next.

A pass measures each combination once, in an order of its own. A run measures what its time limit allows of
one pass; the next run goes on. What is kept between runs is the position, as JSON.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import asdict, dataclass
from typing import Any

from probes.base import Measurement, Parameter

FEWEST = 6  # one is set aside, and of fewer than five values Chauvenet's criterion can reject none
PASSES = Parameter(FEWEST, "passes of a sweep, each in another random order", FEWEST, 1000)
SEED = Parameter(1, "seed of the random orders", 0, 2**31)
MOST_VALUES = 900  # of a run: a report has at most 1000 metrics


@dataclass(frozen=True)
class SweepPosition:
    """The place in a sweep. *began* is the Unix time of the sweep, which identifies it.

    *done* combinations of the pass *number* have been measured.
    """

    began: int
    number: int = 1
    done: int = 0

    def advanced(self, count: int, combinations: int, passes: int) -> SweepPosition | None:
        """Return the position after *count* more combinations; None at the end of the sweep."""
        done = self.done + count
        if done < combinations:
            return SweepPosition(self.began, self.number, done)
        return SweepPosition(self.began, self.number + 1) if self.number < passes else None


def order(combinations: int, seed: int, position: SweepPosition) -> list[int]:
    """Return the numbers of the combinations in the order of the pass of *position*."""
    drawn = random.Random(f"{seed} {position.began} {position.number}")  # noqa: S311 - no secret
    numbers = list(range(combinations))
    drawn.shuffle(numbers)
    return numbers


def design_digest(design: object) -> str:
    """Return a digest of the parameters that decide what a sweep measures."""
    return hashlib.sha256(json.dumps(design, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class SweepState:
    """What a sweep keeps between its runs.

    *restore* has the values, by factor, that privileged factors had before the sweep, while they may be
    changed.
    """

    design: str = ""
    position: SweepPosition | None = None  # None: the next run begins a sweep
    restore: dict[str, str] | None = None

    def to_text(self) -> str:
        return json.dumps(asdict(self))


def parse_state(text: str | None) -> SweepState:
    """Return the state in *text*, which ``SweepState.to_text`` has made.

    Raises:
        ValueError: *text* is damaged.
    """
    if text is None:
        return SweepState()
    try:
        document: dict[str, Any] = json.loads(text)
        position, restore = document["position"], document["restore"] or {}
        return SweepState(
            design=str(document["design"]),
            position=None
            if position is None
            else SweepPosition(**{key: int(position[key]) for key in position}),
            restore={str(name): str(level) for name, level in restore.items()} or None,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"damaged: {text[:80]!r}") from None


def first_metrics(prefix: str, position: SweepPosition) -> list[Measurement]:
    """Return the metrics that say to which sweep and pass the values of a run belong."""
    return [
        Measurement(f"{prefix}.pass", position.number, "pass"),
        Measurement(f"{prefix}.began", position.began, "seconds"),
    ]


def last_metrics(prefix: str, measured: int, remaining: int) -> list[Measurement]:
    """Return the metrics that say how far a run came in its pass."""
    return [
        Measurement(f"{prefix}.measured", measured, "combinations"),
        Measurement(f"{prefix}.remaining", remaining, "combinations"),
    ]
