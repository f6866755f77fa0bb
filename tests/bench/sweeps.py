"""Sweeps with known effects and known best settings: how often the statistics find them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from forecasting.sweeps.effects import effects_of
from forecasting.sweeps.sweet_spot import SMALLEST_GAIN, Streams, sweet_spot
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.madbench_virtual import Load, io_seconds
from monitor.testbed.storage.profile import MIB
from monitor.testbed.storage.virtual import VirtualStorage
from tests.bench.base import Result
from tests.forecasting.sweeps.planted import planted
from tests.forecasting.sweeps.stream_profiles import PUBLISHED, Times, swept, true_saving

SEEDS = 100
TASKS = 16
LARGE = 1.05  # the size of an effect that must be found


def measure() -> list[Result]:
    return [*_effects(), *_sweet_spots()]


def _effects() -> list[Result]:
    large = found = claimed = wrong = good = 0
    for seed in range(SEEDS):
        sweep = planted(seed)
        effects = effects_of(sweep.sweep)
        for effect in effects.terms:
            if sweep.size(effect.term) >= LARGE:
                large += 1
                found += effect.is_claimed
            if effect.is_claimed:
                claimed += 1
                wrong += effect.term not in sweep.effects
        good += sweep.value(effects.choice.levels) >= 0.98
    figures = {"sweeps": float(SEEDS), "effects of 5 % or more": float(large), "claimed": float(claimed)}
    return [
        Result("planted effects of 5 % or more found", found / large, 0.95, "higher", figures),
        Result("claimed effects that were not planted", wrong / claimed, 0.05, "lower", figures),
        Result("choices within 2 % of the best", good / SEEDS, 0.95, "higher", figures),
    ]


def _sweet_spots() -> Iterator[Result]:
    """Sweep all profiles: those without published times as the emulator's model has them."""
    with tempfile.TemporaryDirectory(prefix="gridcast-sweeps-") as scratch:
        library = build.model_library(Path(scratch))
        tables = {name: PUBLISHED.get(name) or _modelled(name, library) for name in profiles.names()}
    for profile, times in tables.items():
        yield from _streams(profile, times)


def _modelled(profile: str, library: Path) -> Times:
    """Return the times of the emulated device *profile*, in virtual time; *library* is the model."""
    load = Load(TASKS, 12 * MIB, rounds=1)
    limits = [1 << power for power in range(TASKS.bit_length())]
    times = {}
    for streams in (Streams(readers, writers) for readers in limits for writers in limits):
        with VirtualStorage(library, profiles.load(profile)) as storage:
            times[streams] = io_seconds(storage, load, writers=streams.writers, readers=streams.readers)
    return times


def _streams(profile: str, times: Times) -> Iterator[Result]:
    best = min(times, key=times.__getitem__)
    spots = [sweet_spot(swept(times, seed)) for seed in range(SEEDS)]
    in_set = sum(any(each.is_best and each.streams == best for each in spot.settings) for spot in spots)
    held = sum(spot.gain.low <= true_saving(times, spot.gain.streams) <= spot.gain.high for spot in spots)
    figures = {
        "settings": float(len(times)),
        "helps": float(sum(spot.verdict == "helps" for spot in spots)),
        "settings in the set": sum(each.is_best for spot in spots for each in spot.settings) / SEEDS,
        "the best saves": true_saving(times, best),
    }
    yield Result(f"{profile}: the best setting is in the set", in_set / SEEDS, 0.95, "higher", figures)
    yield Result(f"{profile}: 90 % intervals hold the gain", held / SEEDS, 0.85, "higher", figures)
    if true_saving(times, best) < SMALLEST_GAIN:
        yield Result(f"{profile}: helps", figures["helps"] / SEEDS, 0.0, "lower", figures)
