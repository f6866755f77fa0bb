"""The disturbances, drawn from a seed and spread over all runs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.monitor.chaos.processes import Gridcast

DISTURBANCES: Mapping[str, Callable[[Gridcast, float], None]] = {
    "beat is killed": lambda gridcast, _: gridcast.kill("beat"),
    "the control worker is killed": lambda gridcast, _: gridcast.kill("control"),
    "the reporter is killed": lambda gridcast, _: gridcast.kill("reporter"),
    "the broker is killed": lambda gridcast, _: gridcast.kill("valkey"),
    "a process of the control worker is killed": lambda gridcast, which: gridcast.kill_a_child(
        "control", which
    ),
    "a process of the reporter is killed": lambda gridcast, which: gridcast.kill_a_child("reporter", which),
    "the broker loses its data": lambda gridcast, _: gridcast.flush(),
    "the broker saves": lambda gridcast, _: gridcast.save(),
}


@dataclass(frozen=True)
class Event:
    """Cause *what* when *ended* runs have ended; *which* (0 to 1) selects one of several processes."""

    ended: int
    what: str
    which: float

    def cause(self, gridcast: Gridcast) -> None:
        DISTURBANCES[self.what](gridcast, self.which)

    def __str__(self) -> str:
        return f"{self.what} when {self.ended} runs have ended"


def draw_events(seed: int, runs: int, rounds: float) -> list[Event]:
    """Return *rounds* times all disturbances in random order, spread over *runs*; of half a round, half."""
    chance = random.Random(seed)
    kinds = list(DISTURBANCES) * math.ceil(rounds)
    chance.shuffle(kinds)
    kinds = kinds[: round(len(DISTURBANCES) * rounds)]
    share = runs / (len(kinds) + 1)
    return [
        Event(int((number + chance.random()) * share), what, chance.random())
        for number, what in enumerate(kinds)
    ]
