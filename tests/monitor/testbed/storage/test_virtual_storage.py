from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from monitor.testbed.storage import profiles
from monitor.testbed.storage.madbench_virtual import Load, io_seconds
from monitor.testbed.storage.profile import KIB, MIB, StorageProfile
from monitor.testbed.storage.published import TABLES, virtual_values
from monitor.testbed.storage.rates_virtual import rates_of
from monitor.testbed.storage.virtual import VirtualStorage

Open = Callable[[StorageProfile], VirtualStorage]

DISK = StorageProfile(
    spindles=1,
    prefetch_bytes=MIB,
    segments=2,
    seek_seconds=4e-3,
    rotation_seconds=6e-3,
    bytes_per_second=100e6,
)


@pytest.fixture
def opened(model_library: Path) -> Open:
    return lambda profile: VirtualStorage(model_library, profile)


def sequential(
    storage: VirtualStorage, file: int, size: int, *, is_write: bool = False, start: float = 0.0
) -> float:
    """Return the seconds of calls of 128 KiB one after another."""
    end = start
    for offset in range(0, size, 128 * KIB):
        end = storage.serve(file, offset, 128 * KIB, is_write=is_write, arrival_seconds=end)
    return end - start


def at_random(
    storage: VirtualStorage, file: int, size: int, count: int, *, is_write: bool = False, start: float
) -> float:
    """Return the seconds of *count* calls of 4 KiB in a file of *size* bytes."""
    end = start
    for number in range(count):
        offset = number * 7919 * 4 * KIB % size
        end = storage.serve(file, offset, 4 * KIB, is_write=is_write, arrival_seconds=end)
    return end - start


def test_one_stream_has_the_rate_of_the_spindle(opened: Open) -> None:
    with opened(DISK) as storage:
        taken = sequential(storage, 1, 64 * MIB, is_write=True)
        assert 64 * MIB / taken == pytest.approx(100e6, rel=0.02)
        assert 64 * MIB / sequential(storage, 1, 64 * MIB, start=taken) == pytest.approx(100e6, rel=0.05)


def test_random_reads_cost_a_seek_and_half_a_revolution(opened: Open) -> None:
    with opened(DISK) as storage:
        start = sequential(storage, 1, 64 * MIB, is_write=True)
        assert at_random(storage, 1, 64 * MIB, 500, start=start) / 500 == pytest.approx(7e-3, rel=0.05)


@pytest.mark.parametrize(("readers", "is_slow"), [(1, False), (2, False), (3, True), (4, True)])
def test_more_streams_than_segments_fall_off_a_cliff(readers: int, is_slow: bool, opened: Open) -> None:
    with opened(DISK) as storage:
        io_seconds(storage, Load(1, 4 * MIB, 1), writers=1, readers=1)  # used before
        writing = io_seconds(storage, Load(readers, 4 * MIB, 2), writers=1, readers=readers)
    assert (readers * 24 * MIB / writing < 40e6) is is_slow


def test_a_stream_that_is_read_ahead_keeps_several_spindles_busy(opened: Open) -> None:
    wide = replace(DISK, spindles=4, stripe_bytes=64 * KIB, prefetch_bytes=0)
    times = {}
    for in_flight in (1, 4):
        load = Load(1, 16 * MIB, 2, read_bytes=64 * KIB, reads_in_flight=in_flight)
        with opened(wide) as storage:
            times[in_flight] = io_seconds(storage, load, writers=1, readers=1)
    assert times[4] < 0.6 * times[1]


def test_files_written_at_once_are_read_more_slowly(opened: Open) -> None:
    times = {}
    for writers in (1, 8):
        with opened(DISK) as storage:
            times[writers] = io_seconds(storage, Load(8, 2 * MIB, 4), writers=writers, readers=1)
    assert times[8] > 2 * times[1]


def test_a_write_cache_spares_writers_the_seeks(opened: Open) -> None:
    with opened(replace(DISK, write_bytes_per_second=50e6)) as storage:
        end = 0.0
        for number in range(200):
            offset = number * 7919 * 128 * KIB % (512 * MIB)
            end = storage.serve(1, offset, 128 * KIB, is_write=True, arrival_seconds=end)
    assert 200 * 128 * KIB / end == pytest.approx(50e6, rel=0.01)


def test_a_write_cache_gathers_only_what_is_written_in_order(opened: Open) -> None:
    with opened(replace(DISK, write_bytes_per_second=50e6)) as storage:
        written = sequential(storage, 1, 64 * MIB, is_write=True)
        again = sequential(storage, 1, 64 * MIB, is_write=True, start=written)
        assert again == pytest.approx(written, abs=0.01)
        scattered = at_random(storage, 1, 64 * MIB, 500, is_write=True, start=written + again)
    assert scattered / 500 == pytest.approx(7e-3, rel=0.05)


def test_spindles_work_at_the_same_time(opened: Open) -> None:
    wide = replace(DISK, spindles=8, stripe_bytes=16 * KIB, prefetch_bytes=128 * KIB)
    with opened(wide) as storage:
        start = sequential(storage, 1, 64 * MIB, is_write=True)
        assert 64 * MIB / sequential(storage, 1, 64 * MIB, start=start) > 6 * 100e6


def test_writes_also_write_the_parity_of_their_rows(opened: Open) -> None:
    taken = {}
    for parity in (0, 1):
        spindles = StorageProfile(spindles=4 + parity, parity=parity, bytes_per_second=100e6)
        with opened(spindles) as storage:
            taken[parity] = storage.serve(1, 0, 64 * MIB, is_write=True, arrival_seconds=0.0)
    assert taken[1] == pytest.approx(taken[0], rel=0.01)  # 64 MiB on four spindles: their parity on the fifth


def test_the_controller_limits_the_spindles(opened: Open) -> None:
    profile = StorageProfile(
        spindles=8, bytes_per_second=100e6, controller_bytes_per_second=200e6, stripe_bytes=16 * KIB
    )
    with opened(profile) as storage:
        assert 64 * MIB / sequential(storage, 1, 64 * MIB, is_write=True) == pytest.approx(200e6, rel=0.05)


def test_the_first_access_to_each_part_is_cold(opened: Open) -> None:
    with opened(replace(DISK, cold_bytes=MIB, cold_seconds=5e-3)) as storage:
        first = sequential(storage, 1, 16 * MIB, is_write=True)
        again = sequential(storage, 1, 16 * MIB, is_write=True, start=first)
    assert first - again == pytest.approx(16 * 5e-3, abs=0.02)


def test_equal_seeds_give_equal_times_and_other_seeds_other_times(opened: Open) -> None:
    ends = []
    for seed in (1, 1, 2):
        with opened(replace(DISK, seed=seed, noise=0.05)) as storage:
            ends.append(sequential(storage, 1, 4 * MIB, is_write=True))
    assert ends[0] == ends[1] != ends[2]


def test_a_full_device_refuses_writes_until_a_file_is_shortened(opened: Open) -> None:
    with opened(replace(DISK, capacity_bytes=MIB)) as storage:
        storage.serve(1, 0, MIB, is_write=True, arrival_seconds=0.0)
        assert storage.free_bytes == 0
        with pytest.raises(OSError, match="no space left"):
            storage.serve(2, 0, 1, is_write=True, arrival_seconds=0.0)
        storage.serve(1, 0, MIB, is_write=True, arrival_seconds=0.0)  # in place
        storage.truncate(1, MIB // 2)
        assert storage.free_bytes == MIB // 2
        storage.serve(2, 0, 1, is_write=True, arrival_seconds=0.0)


def test_parts_that_were_never_written_are_read_without_an_access(opened: Open) -> None:
    with opened(DISK) as storage:
        assert storage.serve(1, 0, 64 * MIB, is_write=False, arrival_seconds=3.0) == 3.0


@pytest.mark.parametrize("name", profiles.names())
def test_each_profile_serves_a_file(name: str, opened: Open) -> None:
    with opened(profiles.load(name)) as storage:
        written = sequential(storage, 1, 8 * MIB, is_write=True)
        assert 0.0 < sequential(storage, 1, 8 * MIB, start=written) < 10.0


@pytest.mark.parametrize("name", TABLES)
def test_the_published_times_are_met_within_15_per_cent_and_the_best_is_the_best(
    name: str, model_library: Path
) -> None:
    published, found = TABLES[name].values, virtual_values(name, model_library)
    assert {setting: found[setting] / published[setting] for setting in published} == {
        setting: pytest.approx(1.0, abs=0.15) for setting in published
    }
    assert min(found, key=found.__getitem__) == min(published, key=published.__getitem__)


def test_the_rates_of_a_disk_are_those_of_its_spindle_and_of_its_seeks(opened: Open) -> None:
    with opened(DISK) as storage:
        rates = rates_of(storage)
    assert rates.write_mb == pytest.approx(100.0, rel=0.01)
    assert rates.read_mb == pytest.approx(100.0, rel=0.05)
    assert rates.random_write == pytest.approx(1 / 7e-3, rel=0.05)
    assert rates.random_read == pytest.approx(1 / 7e-3, rel=0.05)


def test_small_requests_keep_all_channels_of_flash_busy(opened: Open) -> None:
    channels = StorageProfile(spindles=8, stripe_bytes=4 * KIB, read_latency_seconds=1e-3)
    with opened(channels) as storage:
        assert rates_of(storage).random_read == pytest.approx(8 / 1e-3, rel=0.1)


@pytest.mark.parametrize("name", ["ram", "flash", "flash-raid0-16"])
def test_no_limit_saves_time_where_no_head_moves(name: str, opened: Open) -> None:
    times = {}
    for writers, readers in product((1, 4, 16), repeat=2):
        with opened(profiles.load(name)) as storage:
            times[writers, readers] = io_seconds(
                storage, Load(16, 2 * MIB, 1), writers=writers, readers=readers
            )
    assert min(times.values()) > 0.97 * times[16, 16]
