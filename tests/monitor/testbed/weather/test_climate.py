"""When stages are slow: by rank, so that the figures hold for runs at any step of the hour."""

import numpy as np
import pytest

from monitor.testbed.weather import profiles
from monitor.testbed.weather.climate import CYCLE_HOURS, STEPS_PER_HOUR, runtimes
from monitor.testbed.weather.figures import LEVELS, quantiles
from monitor.testbed.weather.profile import STAGES

TERAGRID = profiles.load("teragrid")


def test_each_step_of_the_hour_has_one_runtime_of_each_stratum_in_every_cycle() -> None:
    gather, preco = runtimes(TERAGRID, seed=5, cycle=3)
    for probe, figures in ((gather, TERAGRID.gather), (preco, TERAGRID.preco)):
        for row, stage in zip(probe, STAGES, strict=True):
            strata = quantiles(figures[stage]).reshape(CYCLE_HOURS, LEVELS)
            drawn = np.sort(row.reshape(CYCLE_HOURS, STEPS_PER_HOUR), axis=0)
            assert np.all(drawn >= strata[:, :1])
            assert np.all(drawn <= strata[:, -1:])


def test_eight_cycles_take_every_quantile_once_at_each_step_of_the_hour() -> None:
    compute = STAGES.index("compute")
    cycles = [runtimes(TERAGRID, 5, cycle)[0][compute, 4::STEPS_PER_HOUR] for cycle in range(LEVELS)]
    assert np.sort(np.concatenate(cycles)) == pytest.approx(quantiles(TERAGRID.gather["compute"]))


def test_the_weather_continues_from_one_cycle_to_the_next_without_a_jump() -> None:
    """Over many boundaries, the last hour of a cycle correlates with the first of the next."""
    ends, starts = [], []
    for cycle in range(24):
        gather, _ = runtimes(TERAGRID, 0, cycle)
        ends.append(np.log(gather[:, -STEPS_PER_HOUR:]).mean(axis=1))
        starts.append(np.log(gather[:, :STEPS_PER_HOUR]).mean(axis=1))
    before, after = np.array(ends[:-1]), np.array(starts[1:])
    correlations = [np.corrcoef(before[:, n], after[:, n])[0, 1] for n in range(len(STAGES))]
    assert np.mean(correlations) > 0.6


def test_afternoons_are_slower_than_nights() -> None:
    gather, _ = runtimes(TERAGRID, 0, 0)
    by_hour = gather.sum(axis=0).reshape(-1, 24, STEPS_PER_HOUR).mean(axis=(0, 2))  # from 08:00 on
    afternoon, night = by_hour[5:10].mean(), by_hour[17:22].mean()
    assert afternoon > 1.1 * night
