"""The disturbances, drawn from a seed and spread over all runs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.monitor.chaos.processes import Gridcast

KILLS = 20
DISTURBANCES: Mapping[str, Callable[[Gridcast, float], None]] = {
    "beat is killed": lambda one, _: one.kill("beat"),
    "the control worker is killed": lambda one, _: one.kill("control"),
    "the reporter is killed": lambda one, _: one.kill("reporter"),
    "the broker is killed": lambda one, _: one.kill("valkey"),
    "a process of the control worker is killed": lambda one, which: one.kill_a_child("control", which),
    "a process of the reporter is killed": lambda one, which: one.kill_a_child("reporter", which),
    "the broker loses its data": lambda one, _: one.flush(),
    "the broker saves": lambda one, _: one.save(),
}
_KILLING = [name for name in DISTURBANCES if name.endswith("killed")]
_OTHERS = ["the broker loses its data"] * 4 + ["the broker saves"] * 3


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


def draw_events(seed: int, runs: int) -> list[Event]:
    """Return ``KILLS`` kills, each kind at least three times, and the other disturbances, in order."""
    chance = random.Random(seed)
    kinds = _KILLING * (KILLS // len(_KILLING))
    kinds += chance.choices(_KILLING, k=KILLS - len(kinds)) + _OTHERS
    chance.shuffle(kinds)
    share = runs / (len(kinds) + 1)
    return [
        Event(int((number + chance.random()) * share), what, chance.random())
        for number, what in enumerate(kinds)
    ]
