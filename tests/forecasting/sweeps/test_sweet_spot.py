from __future__ import annotations

import pytest

from forecasting.reading.sweeps import StreamRow
from forecasting.sweeps.sweet_spot import Streams, UnusableStreams, sweet_spot
from tests.forecasting.sweeps.stream_profiles import FLAT, PUBLISHED, swept, true_saving


@pytest.mark.parametrize("profile", ["xeon-eide", "p690-scsi", "beowulf-raid5"])
def test_a_limit_helps_the_disks_of_the_published_systems(profile: str) -> None:
    spot = sweet_spot(swept(PUBLISHED[profile], seed=1))
    times = PUBLISHED[profile]
    assert spot.verdict == "helps"
    assert spot.unlimited == max(times)
    assert min(times, key=times.__getitem__) in {each.streams for each in spot.settings if each.is_best}
    assert spot.gain.low <= true_saving(PUBLISHED[profile], spot.gain.streams) <= spot.gain.high
    assert spot.passes_needed is None


def test_no_limit_helps_where_all_settings_take_the_same_time() -> None:
    spot = sweet_spot(swept(FLAT, seed=1, passes=9, noise=0.005))
    assert spot.verdict == "does not help"
    assert spot.gain.high < 0.03


def test_too_much_noise_leaves_it_undecided_and_says_how_many_passes_a_verdict_needs() -> None:
    spot = sweet_spot(swept(PUBLISHED["p690-scsi"], seed=4, passes=3, noise=0.1))
    assert spot.verdict == "undecided"
    assert spot.passes_needed is not None
    assert spot.passes_needed > spot.passes


def test_a_slow_pass_slows_all_its_settings_and_is_not_taken_for_noise() -> None:
    rows = swept(PUBLISHED["xeon-eide"], seed=2)
    slowed = [
        StreamRow(row.number, row.readers, row.writers, row.seconds * (3.0 if row.number == 4 else 1.0), {})
        for row in rows
    ]
    assert sweet_spot(slowed).gain.saved == pytest.approx(sweet_spot(rows).gain.saved)


def test_the_price_of_each_setting_stands_beside_its_time() -> None:
    rows = [
        StreamRow(row.number, row.readers, row.writers, row.seconds, {"barrier_seconds": 2.0 * row.number})
        for row in swept(PUBLISHED["xeon-eide"], seed=1, passes=3)
    ]
    assert {each.price_seconds["barrier_seconds"] for each in sweet_spot(rows).settings} == {5.0}


def test_the_first_pass_is_reported_and_set_aside() -> None:
    spot = sweet_spot(swept(PUBLISHED["xeon-eide"], seed=1))
    assert spot.passes == 5
    assert spot.first_pass is not None
    assert spot.first_pass.low > 1.1


@pytest.mark.parametrize(
    ("keep", "complaint"),
    [
        (lambda row: (row.readers, row.writers) == (4, 4), "at least two settings"),
        (lambda row: (row.readers, row.writers) in {(1, 4), (4, 1)}, "4 readers and 4 writers"),
        (lambda row: row.number <= 2, "two passes after pass 1"),
    ],
)
def test_streams_that_cannot_be_compared_are_refused(keep, complaint: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UnusableStreams, match=complaint):
        sweet_spot([row for row in swept(PUBLISHED["xeon-eide"], seed=1) if keep(row)])


def test_settings_are_ordered_from_the_fastest() -> None:
    settings = sweet_spot(swept(PUBLISHED["xeon-eide"], seed=1)).settings
    assert settings[0].slower == 1.0
    assert [each.seconds for each in settings] == sorted(each.seconds for each in settings)
    assert settings[-1].streams in {Streams(4, 4), Streams(4, 1)}
