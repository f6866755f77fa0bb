"""The weather of a grid at any step, and runs drawn from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.testbed.weather import profiles
from monitor.testbed.weather.climate import CYCLE_HOURS, CYCLE_STEPS, STEPS_PER_HOUR, runtimes
from monitor.testbed.weather.conditions import MECHANISMS, Conditions
from monitor.testbed.weather.episodes import SHARED, Episode, episodes, sites_using
from monitor.testbed.weather.figures import Floats
from monitor.testbed.weather.profile import STAGES, TOTALS, Profile

Flags = NDArray[np.bool_]

_CYCLES_KEPT = 2


@dataclass(frozen=True)
class Draws:
    """Runs drawn from the weather at regular steps; all arrays are in the order of the runs.

    ``gather`` and ``preco`` have seconds by stage; those of a failed run are the ones that it would have had
    without the fault. ``passed`` has a flag per run for "gather", "circle", "preco" and "combined" (both
    Gather and PreCo).
    """

    gather: dict[str, Floats]
    preco: dict[str, Floats]
    passed: dict[str, Flags]

    def gather_total(self, total: str) -> Floats:
        """Return "total", "total_essential" or "total_core" of each run of Gather, in seconds."""
        return _sum(self.gather, total)

    def preco_total(self, total: str) -> Floats:
        """Return "total", "total_essential" or "total_core" of each run of PreCo, in seconds."""
        return _sum(self.preco, total)


def _sum(stages: dict[str, Floats], total: str) -> Floats:
    return np.asarray(np.sum([stages[stage] for stage in TOTALS[total]], axis=0))


def _by_stage(parts: list[Floats]) -> dict[str, Floats]:
    return dict(zip(STAGES, np.concatenate(parts, axis=1), strict=True))


@dataclass(frozen=True)
class _Cycle:
    """Three weeks of weather: arrays (stage, step), (mechanism, hour), (hour,), (step,) in this order."""

    gather: Floats
    preco: Floats
    slowest: NDArray[np.int64]
    others: Floats
    episode: NDArray[np.intp]  # index of the episode, -1 in good weather
    episodes: list[Episode]

    def broken(self, *, shared_only: bool) -> Flags:
        """Return for each step whether there is a fault; with *shared_only*, one that affects all probes."""
        counts = np.array([episode.affects_all or not shared_only for episode in self.episodes] + [False])
        return np.asarray(counts[self.episode])


class Weather:
    """The weather of a grid of *sites* sites: a function of the arguments, without a period.

    It is computed in cycles of three weeks (9,072 steps) when a step of the cycle is first needed.
    """

    def __init__(self, profile: str | Profile, seed: int, sites: int = 7) -> None:
        """Create the weather of *profile* (or of the shipped one of that name) for *seed* >= 0.

        Raises:
            UnknownProfile: no profile has that name.
            ValueError: a negative seed or no site.
        """
        if seed < 0 or sites < 1:
            raise ValueError(f"a seed is at least 0 and a grid has at least one site, not {seed} and {sites}")
        self.profile = profiles.load(profile) if isinstance(profile, str) else profile
        self.seed = seed
        self.sites = sites
        self._cycles: dict[int, _Cycle] = {}

    def at(self, index: int) -> Conditions:
        """Return the conditions of step *index*, which counts from 0 at the epoch of the grid.

        Raises:
            ValueError: *index* is negative.
        """
        if index < 0:
            raise ValueError(f"the grid began at step 0, so there is no step {index}")
        number, step = divmod(index, CYCLE_STEPS)
        cycle, hour = self._cycle(number), step // STEPS_PER_HOUR
        episode = cycle.episode[step]
        return Conditions(
            index=index,
            seconds=dict(zip(MECHANISMS, cycle.gather[:, step].tolist(), strict=True)),
            slowest_site=dict(zip(SHARED, cycle.slowest[:, hour].tolist(), strict=True)),
            others_fraction=float(cycle.others[hour]),
            fault=None if episode < 0 else cycle.episodes[episode].fault,
            application_seconds=dict(zip(MECHANISMS, cycle.preco[:, step].tolist(), strict=True)),
        )

    def draws(self, n: int, every: int = STEPS_PER_HOUR) -> Draws:
        """Draw *n* runs, one each *every* steps from step 0 on; hourly by default.

        Raises:
            ValueError: *n* or *every* is less than 1.
        """
        if min(n, every) < 1:
            raise ValueError(
                f"expected at least one run and at least one step between runs, not {n} and {every}"
            )
        number, step = np.divmod(np.arange(n) * every, CYCLE_STEPS)
        parts = [(self._cycle(int(cycle)), step[number == cycle]) for cycle in np.unique(number)]
        computes = np.concatenate([~cycle.broken(shared_only=False)[at] for cycle, at in parts])
        circle = np.concatenate([~cycle.broken(shared_only=True)[at] for cycle, at in parts])
        return Draws(
            gather=_by_stage([cycle.gather[:, at] for cycle, at in parts]),
            preco=_by_stage([cycle.preco[:, at] for cycle, at in parts]),
            # Gather and PreCo use the same mechanisms, so a fault breaks both.
            passed={"gather": computes, "circle": circle, "preco": computes, "combined": computes},
        )

    def _cycle(self, number: int) -> _Cycle:
        """Return a cycle, computed unless it is one of the last few used."""
        cycle = self._cycles.get(number)
        if cycle is None:
            cycle = self._cycles[number] = self._compute(number)
            while len(self._cycles) > _CYCLES_KEPT:
                self._cycles.pop(next(iter(self._cycles)))
        return cycle

    def _compute(self, number: int) -> _Cycle:
        gather, preco = runtimes(self.profile, self.seed, number)
        drawn_episodes = episodes(self.profile, self.seed, number, self.sites)
        episode = np.full(CYCLE_STEPS, -1)
        for index, drawn in enumerate(drawn_episodes):
            episode[drawn.start : drawn.start + drawn.steps] = index
        random = np.random.default_rng([self.seed, number + 1, 10])
        candidates = [sites_using(mechanism, self.sites) for mechanism in SHARED]
        slowest = np.stack([random.integers(sites.start, sites.stop, CYCLE_HOURS) for sites in candidates])
        return _Cycle(gather, preco, slowest, random.uniform(0.4, 0.9, CYCLE_HOURS), episode, drawn_episodes)
