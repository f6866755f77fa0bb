"""Draw episodes of bad weather: an episode is one fault at one site, and most episodes last for days.

The profile determines the share of a cycle that has a fault; fault, site, time and length are random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.testbed.weather.climate import CYCLE_STEPS, STEPS_PER_HOUR
from monitor.testbed.weather.conditions import FAULT_KINDS, SiteFault
from monitor.testbed.weather.figures import Floats
from monitor.testbed.weather.profile import Profile

SHARED = ("login", "disk", "inbound", "unlink")
COMPUTE_ONLY = ("compile", "queue", "compute", "outbound")

BLOCK_STEPS = 36 * STEPS_PER_HOUR  # 1.5 days, the mean length of a block
BLIP_STEPS = (6, 30)  # 20 to 100 minutes
BLIPS_SHARE = 1 / 8  # the largest share of blips in the broken time
RESPITE_STEPS = 2 * STEPS_PER_HOUR  # the shortest good weather between two episodes
# At first runs pass, then one blip shows what a failure looks like, then runs pass again.
OPENING_STEPS = (24, 32)
OPENING_BLIPS = 3

Random = np.random.Generator
Broken = tuple[int, tuple[str, ...]]  # number of steps, and the mechanisms; one of them is broken


@dataclass(frozen=True)
class Episode:
    """A *fault* that begins at step *start* of its cycle and lasts for *steps* steps."""

    start: int
    steps: int
    fault: SiteFault

    @property
    def affects_all(self) -> bool:
        """Return whether the fault makes Circle fail too, not only the probes that compute."""
        return self.fault.mechanism in SHARED


def episodes(profile: Profile, seed: int, cycle: int, sites: int) -> list[Episode]:
    """Return the episodes of *cycle*, in order and without overlap."""
    random = np.random.default_rng([seed, cycle + 1, 9])
    broken: list[Broken] = [
        (steps, mechanisms)
        for share, mechanisms in (
            (1 - profile.passed_circle, SHARED),
            (profile.passed_circle - profile.passed_gather, COMPUTE_ONLY),
        )
        for steps in _lengths(random, round(share * CYCLE_STEPS))
    ]
    random.shuffle(broken)
    gaps = _gaps(random, CYCLE_STEPS - sum(steps for steps, _ in broken), len(broken) + 1)
    if cycle == 0 and broken:
        broken, gaps = _opening(random, broken, gaps)
    drawn, step = [], 0
    for gap, (steps, mechanisms) in zip(gaps, broken, strict=False):
        drawn.append(Episode(step + gap, steps, _fault(random, mechanisms, sites)))
        step += gap + steps
    return drawn


def _opening(random: Random, broken: list[Broken], gaps: list[int]) -> tuple[list[Broken], list[int]]:
    """Return *broken* and *gaps* reordered for the first cycle: a short gap, then the shortest episodes."""
    by_length = sorted(range(len(broken)), key=lambda index: broken[index][0])
    first = by_length[:OPENING_BLIPS]
    rest = [episode for index, episode in enumerate(broken) if index not in first]
    soon = int(random.integers(*OPENING_STEPS))
    return [broken[index] for index in first] + rest, [soon, *gaps[1:-1], gaps[-1] + gaps[0] - soon]


def _lengths(random: Random, total: int) -> list[int]:
    """Return random lengths of short and of long episodes (blips and blocks) that add up to *total* steps."""
    blips = random.integers(*BLIP_STEPS, size=CYCLE_STEPS // BLIP_STEPS[1])
    blips = blips[blips.cumsum() <= BLIPS_SHARE * total]
    rest = total - int(blips.sum())
    blocks = _split(rest, random.dirichlet(np.full(max(1, round(rest / BLOCK_STEPS)), 6.0)))
    return [int(steps) for steps in blips] + [steps for steps in blocks if steps]


def _gaps(random: Random, total: int, number: int) -> list[int]:
    """Return random lengths of *number* periods of good weather that add up to *total* steps."""
    least = min(RESPITE_STEPS, total // number)
    return [least + more for more in _split(total - number * least, random.dirichlet(np.ones(number)))]


def _split(total: int, shares: Floats) -> list[int]:
    """Return integers in the proportions of *shares* that add up to *total*."""
    ends = np.rint(total * shares.cumsum()).astype(int)
    return [int(part) for part in np.diff(ends, prepend=0)]


def _fault(random: Random, mechanisms: tuple[str, ...], sites: int) -> SiteFault:
    """Draw a fault of one of *mechanisms*, at a site that uses this mechanism."""
    mechanism = str(random.choice(mechanisms))
    site = int(random.choice(sites_using(mechanism, sites)))
    return SiteFault(site, mechanism, str(random.choice(FAULT_KINDS[mechanism])))


def sites_using(mechanism: str, sites: int) -> range:
    """Return the indices of the sites at which a run of Gather uses *mechanism*.

    The sites of a grid are, in order, the sources, the compute site, and the destination.
    """
    if mechanism in ("login", "unlink"):
        return range(sites)
    if mechanism in ("disk", "inbound"):
        return range(max(sites - 2, 1))
    return range(max(sites - 2, 0), max(sites - 1, 1))
