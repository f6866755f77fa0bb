"""The weather of the emulated network, as a function of seed and time."""

from __future__ import annotations

import statistics

from monitor.testbed.wan.geography import HUB, good_weather
from monitor.testbed.wan.links import LinkTable
from monitor.testbed.wan.schedule import DAY_SECONDS, FINE_SECONDS, troubles, weather_lines

SITES = ("anl", "iu", "ornl", "tacc", "purdue", "ncsa", "sdsc", HUB)


def table(seed: int, seconds: float) -> LinkTable:
    return LinkTable.of(SITES, [*good_weather(SITES), *weather_lines(seed, seconds, SITES)])


def test_delays_follow_the_map_and_both_ways_alike() -> None:
    links = LinkTable.of(SITES, good_weather(SITES)).links
    assert links["sdsc", "ornl"].delay_seconds > 3 * links["iu", "purdue"].delay_seconds > 0
    assert all(link.delay_seconds == links[pair[::-1]].delay_seconds for pair, link in links.items())
    assert max(link.delay_seconds for link in links.values()) < 0.05


def test_equal_seeds_give_equal_weather_and_different_seeds_different() -> None:
    week = range(0, int(7 * DAY_SECONDS), 300)
    weeks = [[weather_lines(seed, moment, SITES) for moment in week] for seed in (1, 1, 2)]
    assert weeks[0] == weeks[1] != weeks[2]


def test_uplinks_are_narrower_by_day_than_by_night() -> None:
    middays = [table(1, (day + 0.25) * DAY_SECONDS).uplinks["ncsa"] for day in range(20)]
    midnights = [table(1, (day + 0.75) * DAY_SECONDS).uplinks["ncsa"] for day in range(20)]
    assert statistics.median(middays) < 0.5 * statistics.median(midnights)


def test_the_first_minutes_are_fine_and_later_links_break_occasionally() -> None:
    moments = range(0, 30_000, 10)
    broken = [moment for moment in moments if troubles(3, moment, SITES)]
    assert min(broken) >= FINE_SECONDS
    assert 0.05 < len(broken) / len(moments) < 0.4
    assert {trouble.kind for moment in moments for trouble in troubles(3, moment, SITES)} == {
        "cut",
        "lossy",
        "slow",
    }
    assert all(trouble.site != HUB for moment in moments for trouble in troubles(3, moment, SITES))


def test_a_cut_off_site_neither_receives_nor_sends() -> None:
    moment, cut = next(
        (moment, trouble)
        for moment in range(0, 100_000, 10)
        for trouble in troubles(1, moment, SITES)
        if trouble.kind == "cut"
    )
    links = table(1, moment).links
    assert {link.loss for pair, link in links.items() if cut.site in pair} == {1.0}
