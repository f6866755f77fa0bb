"""When sites are broken: in blocks of days, for the share that the profile gives, and not at first."""

from dataclasses import replace

import pytest

from monitor.testbed.weather import profiles
from monitor.testbed.weather.climate import CYCLE_STEPS, STEPS_PER_HOUR
from monitor.testbed.weather.conditions import FAULT_KINDS
from monitor.testbed.weather.episodes import BLIP_STEPS, Episode, episodes, sites_using

DAY = 24 * STEPS_PER_HOUR
SEEDS = range(20)
TERAGRID = profiles.load("teragrid")


def several_cycles(seed: int) -> list[Episode]:
    return [episode for cycle in range(4) for episode in episodes(TERAGRID, seed, cycle, sites=7)]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_broken_share_of_each_cycle_is_that_of_the_profile(seed: int) -> None:
    for cycle in range(3):
        drawn = episodes(TERAGRID, seed, cycle, sites=7)
        for_all = sum(episode.steps for episode in drawn if episode.affects_all)
        assert for_all == round(0.22 * CYCLE_STEPS)
        assert sum(episode.steps for episode in drawn) - for_all == round(0.20 * CYCLE_STEPS)


@pytest.mark.parametrize("seed", SEEDS)
def test_episodes_are_ordered_with_good_weather_between_them(seed: int) -> None:
    drawn = episodes(TERAGRID, seed, 1, sites=7)
    ends = [0, *(episode.start + episode.steps for episode in drawn)]
    starts = [*(episode.start for episode in drawn), CYCLE_STEPS]
    assert min(start - end for start, end in zip(starts, ends, strict=True)) >= 2 * STEPS_PER_HOUR


def test_long_episodes_last_about_one_and_a_half_days() -> None:
    blocks = [
        episode.steps for seed in SEEDS for episode in several_cycles(seed) if episode.steps > BLIP_STEPS[1]
    ]
    assert 1.2 * DAY < sum(blocks) / len(blocks) < 1.8 * DAY


def test_most_broken_time_is_in_episodes_longer_than_a_day_and_some_in_blips() -> None:
    drawn = [episode for seed in SEEDS for episode in several_cycles(seed)]
    broken = sum(episode.steps for episode in drawn)
    assert sum(episode.steps for episode in drawn if episode.steps > DAY) > 0.6 * broken
    assert (
        0.05 * broken
        < sum(episode.steps for episode in drawn if episode.steps <= BLIP_STEPS[1])
        < 0.15 * broken
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_hours_pass_have_one_short_blip_and_pass_again(seed: int) -> None:
    first, second = episodes(TERAGRID, seed, 0, sites=7)[:2]
    assert first.start >= 24
    assert first.start + first.steps <= 46
    assert second.start >= first.start + first.steps + 2 * STEPS_PER_HOUR


@pytest.mark.parametrize("sites", [1, 2, 3, 7])
def test_faults_are_at_existing_sites_and_of_kinds_of_their_mechanism(sites: int) -> None:
    for episode in episodes(TERAGRID, 0, 1, sites):
        assert episode.fault.kind in FAULT_KINDS[episode.fault.mechanism]
        assert episode.fault.site in sites_using(episode.fault.mechanism, sites)
        assert 0 <= episode.fault.site < sites


def test_of_seven_sites_five_are_sources_and_the_sixth_computes() -> None:
    assert set(sites_using("login", 7)) == set(range(7))
    assert set(sites_using("inbound", 7)) == set(range(5))
    assert set(sites_using("compile", 7)) == {5}


def test_a_profile_without_faults_has_no_episodes() -> None:
    assert episodes(profiles.load("calm"), 0, 0, sites=7) == []


def test_a_profile_with_rare_faults_has_its_exact_share() -> None:
    rarely = replace(TERAGRID, passed_gather=0.995, passed_circle=0.995)
    assert sum(episode.steps for episode in episodes(rarely, 0, 0, sites=7)) == round(0.005 * CYCLE_STEPS)
