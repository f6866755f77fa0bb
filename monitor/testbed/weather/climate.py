"""Compute the runtime of each stage at each step: autocorrelated, daily, correlated between Gather and PreCo.

Time is divided into steps of 200 s and cycles of three weeks. Latent states determine *when* a stage is slow;
ranks determine *how* slow: for each of the 18 steps of an hour, the 504 hours of a cycle are ranked, and each
rank has one of 504 strata of the stage's distribution. So hourly runs have the figures of a profile by
construction, at any step of the hour. Each stratum has 8 levels; a rank has each level once in 8 cycles.
"""

from __future__ import annotations

import numpy as np

from monitor.testbed.weather.figures import LEVELS, Floats, quantiles
from monitor.testbed.weather.profile import STAGES, Profile

STEP_SECONDS = 200  # of grid time
STEPS_PER_HOUR = 18
CYCLE_HOURS = 21 * 24
CYCLE_STEPS = CYCLE_HOURS * STEPS_PER_HOUR

DRIFT_HOURS = 12.0  # time constant of the drift
DAILY_SHARE = 0.2  # share of the daily wave in the variance of the drift
FIRST_HOUR = 8  # hour of the day of step 0
BUSIEST_HOUR = 15
# While logins or disks hang, few jobs are submitted and the queue is short: the excess of their states over
# HANGING (in standard deviations), times RELIEF, is subtracted from the queue's state. The published maxima
# agree: those of the totals are far below the sums of the stages' maxima.
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
    """Return latent states, shape (3 * stages, hours, steps of the hour).

    The first third of the rows are states that both probes share, then come Gather's, then PreCo's states.
    """
    mixed = _mixing(profile)
    previous, current = (_white_noise(seed, part, 0, (3 * _N, CYCLE_HOURS)) for part in (cycle - 1, cycle))
    drift = _drift(mixed @ np.concatenate([previous, current], axis=1))
    drift[:_N] = np.sqrt(1 - DAILY_SHARE) * drift[:_N] + np.sqrt(DAILY_SHARE) * _daily()
    between = np.arange(STEPS_PER_HOUR) / STEPS_PER_HOUR
    smooth = drift[:, :-1, None] * (1 - between) + drift[:, 1:, None] * between
    moment = np.tensordot(mixed, _white_noise(seed, cycle, 1, (3 * _N, CYCLE_HOURS, STEPS_PER_HOUR)), axes=1)
    return np.asarray(np.sqrt(profile.memory) * smooth + np.sqrt(1 - profile.memory) * moment)


def _white_noise(seed: int, cycle: int, stream: int, shape: tuple[int, ...]) -> Floats:
    """Return white noise that is the same for the same arguments; *cycle* may be -1, before step 0."""
    return np.random.default_rng([seed, cycle + 1, stream]).standard_normal(shape)


def _drift(noise: Floats) -> Floats:
    """Return an Ornstein-Uhlenbeck process for each row of *noise* at the full hours of the second half.

    The first half is the noise of the previous cycle, so the process continues without a jump.
    """
    persistence = np.exp(-1 / DRIFT_HOURS)
    drift = np.empty_like(noise)
    state = noise[:, 0]
    for hour in range(noise.shape[1]):
        state = persistence * state + np.sqrt(1 - persistence**2) * noise[:, hour]
        drift[:, hour] = state
    return drift[:, CYCLE_HOURS - 1 :]


def _daily() -> Floats:
    """Return a daily wave of variance 1, highest at the busiest hour, for each full hour of a cycle."""
    hours = FIRST_HOUR - BUSIEST_HOUR + np.arange(CYCLE_HOURS + 1)
    return np.asarray(np.sqrt(2) * np.cos(2 * np.pi * hours / 24))


def _mixing(profile: Profile) -> Floats:
    """Return the matrix whose product with independent noise has the correlations of *profile*."""
    correlations = np.full((_N, _N), profile.load)
    np.fill_diagonal(correlations, 1.0)
    correlations[_INBOUND, _OUTBOUND] = correlations[_OUTBOUND, _INBOUND] = profile.link
    mixed = np.eye(3 * _N)
    mixed[:_N, :_N] = np.linalg.cholesky(correlations)
    return mixed


def _levels(
    latent: Floats, seed: int, cycle: int, probe: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Return the index of the quantile for each stage and step.

    The rank of the latent state among the hours determines the stratum; levels alternate between cycles.
    """
    ranks = latent.argsort(axis=1).argsort(axis=1)
    shift = np.random.default_rng([seed, 0, 1 + probe]).integers(LEVELS, size=(_N, CYCLE_HOURS))
    # Place the extremes in the first seven of eight cycles: 4,000 hours end just before the eighth does.
    shift[:, 0] = (2 + np.arange(_N) % (LEVELS - 1)) % LEVELS
    shift[:, -1] = 1 + np.arange(_N) % (LEVELS - 1)
    turn = shift[np.arange(_N)[:, None, None], ranks] + cycle + np.arange(STEPS_PER_HOUR)
    return np.asarray(ranks * LEVELS + turn % LEVELS)
