"""How slow each stage is at each step of a cycle: autocorrelated, daily, shared by Gather and PreCo.

A cycle is three weeks. Latent states say *when* a stage is slow; *how* slow is decided by rank: for each of
the 18 steps of an hour the 504 hours of a cycle compete for 504 strata of the stage's distribution. So the
figures of a profile hold for hourly runs by construction, whenever in the hour they start, not by luck.
Inside its stratum a rank takes one of 8 levels, each once in 8 cycles.
"""

from __future__ import annotations

import numpy as np

from monitor.testbed.weather.figures import LEVELS, Floats, quantiles
from monitor.testbed.weather.profile import STAGES, Profile

STEP_SECONDS = 200  # of grid time
STEPS_PER_HOUR = 18
CYCLE_HOURS = 21 * 24
CYCLE_STEPS = CYCLE_HOURS * STEPS_PER_HOUR

DRIFT_HOURS = 12.0  # after so long the drift has forgotten all but 1/e
DAILY_SHARE = 0.2  # of the variance of the drift
FIRST_HOUR = 8  # of the day, when the grid begins
BUSIEST_HOUR = 15
# Where logins or disks hang, hardly a job gets in and the queue runs dry: what they are slower than HANGING
# (standard deviations) relieves the queue so many times over. Published maxima of the totals say the same:
# they are far below the sum of the stages' maxima.
HANGING = 2.0
RELIEF = 2.0

_N = len(STAGES)
_QUEUE, _INBOUND, _OUTBOUND = map(STAGES.index, ("queue_wait", "transfer_data", "transfer_results"))
_HANGING = [STAGES.index(stage) for stage in ("init", "stage_data", "cleanup")]


def runtimes(profile: Profile, seed: int, cycle: int) -> tuple[Floats, Floats]:
    """Return the seconds of each stage of Gather and of PreCo: two arrays (stage, step of the cycle)."""
    states = _states(profile, seed, cycle)
    coupling = np.array([profile.coupling[stage] for stage in STAGES])[:, None, None]
    common, own = np.sqrt(coupling) * states[:_N], np.sqrt(1 - coupling)
    rows = []
    for number, figures in enumerate((profile.gather, profile.preco), start=1):
        latent = common + own * states[number * _N : (number + 1) * _N]
        latent[_QUEUE] -= RELIEF * np.maximum(latent[_HANGING] - HANGING, 0.0).sum(axis=0)
        levels = _levels(latent, seed, cycle, number)
        tables = np.stack([quantiles(figures[stage]) for stage in STAGES])
        drawn = np.take_along_axis(tables, levels.reshape(_N, CYCLE_STEPS), axis=1)
        rows.append(drawn)
    return rows[0], rows[1]


def _states(profile: Profile, seed: int, cycle: int) -> Floats:
    """Return the latent states (3 * stages, hours, steps of the hour): the common ones, Gather's, PreCo's."""
    mixed = _mixing(profile)
    previous, current = (_luck(seed, part, 0, (3 * _N, CYCLE_HOURS)) for part in (cycle - 1, cycle))
    drift = _drift(mixed @ np.concatenate([previous, current], axis=1))
    drift[:_N] = np.sqrt(1 - DAILY_SHARE) * drift[:_N] + np.sqrt(DAILY_SHARE) * _daily()
    between = np.arange(STEPS_PER_HOUR) / STEPS_PER_HOUR
    smooth = drift[:, :-1, None] * (1 - between) + drift[:, 1:, None] * between
    moment = np.tensordot(mixed, _luck(seed, cycle, 1, (3 * _N, CYCLE_HOURS, STEPS_PER_HOUR)), axes=1)
    return np.asarray(np.sqrt(profile.memory) * smooth + np.sqrt(1 - profile.memory) * moment)


def _luck(seed: int, cycle: int, stream: int, shape: tuple[int, ...]) -> Floats:
    """Return white noise that depends on the arguments alone; *cycle* may be -1, before the beginning."""
    return np.random.default_rng([seed, cycle + 1, stream]).standard_normal(shape)


def _drift(noise: Floats) -> Floats:
    """Return an Ornstein-Uhlenbeck process for each row of *noise* at the full hours of its second half.

    The first half, the noise of the cycle before, brings it to where that cycle ended, so nothing jumps.
    """
    kept = np.exp(-1 / DRIFT_HOURS)
    drift = np.empty_like(noise)
    state = noise[:, 0]
    for hour in range(noise.shape[1]):
        state = kept * state + np.sqrt(1 - kept**2) * noise[:, hour]
        drift[:, hour] = state
    return drift[:, CYCLE_HOURS - 1 :]


def _daily() -> Floats:
    """Return a wave of variance 1 that peaks at the busiest hour, at each full hour of a cycle."""
    hours = FIRST_HOUR - BUSIEST_HOUR + np.arange(CYCLE_HOURS + 1)
    return np.asarray(np.sqrt(2) * np.cos(2 * np.pi * hours / 24))


def _mixing(profile: Profile) -> Floats:
    """Return the matrix that gives independent common states the correlations of *profile*."""
    wanted = np.full((_N, _N), profile.load)
    np.fill_diagonal(wanted, 1.0)
    wanted[_INBOUND, _OUTBOUND] = wanted[_OUTBOUND, _INBOUND] = profile.link
    mixed = np.eye(3 * _N)
    mixed[:_N, :_N] = np.linalg.cholesky(wanted)
    return mixed


def _levels(
    latent: Floats, seed: int, cycle: int, probe: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Return which of its quantiles each stage takes at each step, from the rank among the hours."""
    ranks = latent.argsort(axis=1).argsort(axis=1)
    shift = np.random.default_rng([seed, 0, 1 + probe]).integers(LEVELS, size=(_N, CYCLE_HOURS))
    # The extremes are due in the first seven cycles of eight: 4,000 hours end just before the eighth does.
    shift[:, 0] = (2 + np.arange(_N) % (LEVELS - 1)) % LEVELS
    shift[:, -1] = 1 + np.arange(_N) % (LEVELS - 1)
    turn = shift[np.arange(_N)[:, None, None], ranks] + cycle + np.arange(STEPS_PER_HOUR)
    return np.asarray(ranks * LEVELS + turn % LEVELS)
