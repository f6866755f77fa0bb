"""The weather itself: what it is at any step, and what runs drawn from it look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.testbed.weather import profiles
from monitor.testbed.weather.climate import CYCLE_HOURS, CYCLE_STEPS, STEPS_PER_HOUR, runtimes
from monitor.testbed.weather.conditions import MECHANISMS, Conditions
from monitor.testbed.weather.episodes import SHARED, Episode, at_work, episodes
from monitor.testbed.weather.figures import Floats
from monitor.testbed.weather.profile import STAGES, TOTALS, Profile

Flags = NDArray[np.bool_]

_CYCLES_KEPT = 2


@dataclass(frozen=True)
class Draws:
    """Runs drawn from the weather, one every so many steps, all arrays in the order of the runs.

    ``gather`` and ``preco`` are seconds by stage, also where the run failed: what it would have taken.
    ``passed`` holds a flag per run for "gather", "circle", "preco" and "combined" (both Gather and PreCo).
    """

    gather: dict[str, Floats]
    preco: dict[str, Floats]
    passed: dict[str, Flags]

    def gather_total(self, total: str) -> Floats:
        """Return "total", "total_essential" or "total_core" of each run of Gather, in seconds."""
        return _sum(self.gather, total)

    def preco_total(self, total: str) -> Floats:
        """Return the same of PreCo."""
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
    episode: NDArray[np.intp]  # the number of the episode, -1 in good weather
    episodes: list[Episode]

    def broken(self, *, shared_only: bool) -> Flags:
        """Return per step whether something is broken that hits all probes, or anything at all."""
        counts = np.array([one.hits_all or not shared_only for one in self.episodes] + [False])
        return np.asarray(counts[self.episode])


class Weather:
    """The weather of a grid of *sites* sites. Equal arguments give equal weather; it never repeats itself.

    It is made three weeks (9,072 steps) at a time, when somebody first asks for one of them.
    """

    def __init__(self, profile: str | Profile, seed: int, sites: int = 7) -> None:
        """Choose the weather of *profile* (or of the shipped one of that name) that belongs to *seed* >= 0.

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
        """Return the weather of step *index*, counted from 0 since the grid began.

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
        """Draw *n* runs, the first at step 0 and one each *every* steps; hourly ones, unless told otherwise.

        Raises:
            ValueError: *n* or *every* is less than 1.
        """
        if min(n, every) < 1:
            raise ValueError(f"at least one run at least every step, not {n} every {every}")
        number, step = np.divmod(np.arange(n) * every, CYCLE_STEPS)
        parts = [(self._cycle(int(one)), step[number == one]) for one in np.unique(number)]
        computes = np.concatenate([~cycle.broken(shared_only=False)[at] for cycle, at in parts])
        circle = np.concatenate([~cycle.broken(shared_only=True)[at] for cycle, at in parts])
        return Draws(
            gather=_by_stage([cycle.gather[:, at] for cycle, at in parts]),
            preco=_by_stage([cycle.preco[:, at] for cycle, at in parts]),
            # Gather and PreCo use the same mechanisms, so what breaks one breaks the other.
            passed={"gather": computes, "circle": circle, "preco": computes, "combined": computes},
        )

    def _cycle(self, number: int) -> _Cycle:
        """Return a cycle, made now unless it is one of the last few that were asked for."""
        cycle = self._cycles.get(number)
        if cycle is None:
            cycle = self._cycles[number] = self._make(number)
            while len(self._cycles) > _CYCLES_KEPT:
                self._cycles.pop(next(iter(self._cycles)))
        return cycle

    def _make(self, number: int) -> _Cycle:
        gather, preco = runtimes(self.profile, self.seed, number)
        found = episodes(self.profile, self.seed, number, self.sites)
        episode = np.full(CYCLE_STEPS, -1)
        for which, one in enumerate(found):
            episode[one.start : one.start + one.steps] = which
        random = np.random.default_rng([self.seed, number + 1, 10])
        at = [at_work(mechanism, self.sites) for mechanism in SHARED]
        slowest = np.stack([random.integers(sites.start, sites.stop, CYCLE_HOURS) for sites in at])
        return _Cycle(gather, preco, slowest, random.uniform(0.4, 0.9, CYCLE_HOURS), episode, found)
