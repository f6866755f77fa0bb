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
    """Runs drawn from the weather at regular steps; element i of every array belongs to run i.

    Attributes:
        gather, preco: seconds of each run by stage. A failed run has the seconds that it would have taken
            without the fault.
        passed: a flag per run, by "gather", "circle", "preco" and "combined" (both Gather and Circle).
    """

    gather: dict[str, Floats]
    preco: dict[str, Floats]
    passed: dict[str, Flags]

    def gather_total(self, total: str) -> Floats:
        """Return the seconds of each run of Gather; *total* is "total", "total_essential" or "total_core"."""
        return _sum(self.gather, total)

    def preco_total(self, total: str) -> Floats:
        """Return the seconds of each run of PreCo; *total* is "total", "total_essential" or "total_core"."""
        return _sum(self.preco, total)


def _sum(stages: dict[str, Floats], total: str) -> Floats:
    return np.asarray(np.sum([stages[stage] for stage in TOTALS[total]], axis=0))


def _by_stage(parts: list[Floats]) -> dict[str, Floats]:
    return dict(zip(STAGES, np.concatenate(parts, axis=1), strict=True))


@dataclass(frozen=True)
class _Cycle:
    """Three weeks of weather.

    Attributes:
        gather, preco: seconds, shape (stage, step).
        slowest: index of the slowest site, shape (mechanism, hour).
        others: fraction of the slowest site's time that other sites take, shape (hour,).
        episode: index of the episode, -1 in good weather, shape (step,).
        episodes: all episodes of the cycle.
    """

    gather: Floats
    preco: Floats
    slowest: NDArray[np.int64]
    others: Floats
    episode: NDArray[np.intp]  # index of the episode, -1 in good weather
    episodes: list[Episode]

    def broken(self, *, shared_only: bool) -> Flags:
        """Return whether each step has a fault; with *shared_only*, a fault that affects all probes."""
        counts = np.array([episode.affects_all or not shared_only for episode in self.episodes] + [False])
        return np.asarray(counts[self.episode])


class Weather:
    """The weather of a grid with a number of *sites*.

    Equal arguments produce equal weather, and the weather never repeats. A cycle of three weeks (9,072
    steps) is computed when one of its steps is first needed.
    """

    def __init__(self, profile: str | Profile, seed: int, sites: int = 7) -> None:
        """Create the weather for *profile*, which is a profile or the name of a shipped profile.

        Raises:
            UnknownProfile: no shipped profile has the name *profile*.
            ValueError: *seed* is negative, or *sites* is less than 1.
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
        """Draw *n* runs from step 0 on, at intervals of *every* steps (default: an hour).

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
            # Gather and PreCo use the same mechanisms, so a fault breaks both; Circle uses some of them.
            passed={"gather": computes, "circle": circle, "preco": computes, "combined": computes & circle},
        )

    def _cycle(self, number: int) -> _Cycle:
        """Return cycle *number*; compute a cycle that is not among the last few computed cycles."""
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
