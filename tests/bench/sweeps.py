"""Sweeps with known effects and known best settings: how often the statistics find them."""

from __future__ import annotations

from forecasting.sweeps.effects import effects_of
from forecasting.sweeps.sweet_spot import sweet_spot
from tests.bench.base import Result
from tests.forecasting.sweeps.planted import planted
from tests.forecasting.sweeps.stream_profiles import PROFILES, swept, true_saving

SEEDS = 100
LARGE = 1.05  # the size of an effect that must be found


def measure() -> list[Result]:
    return [*_effects(), *(result for profile in PROFILES for result in _streams(profile))]


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


def _streams(profile: str) -> list[Result]:
    times = PROFILES[profile]
    best = min(times, key=times.__getitem__)
    spots = [sweet_spot(swept(profile, seed)) for seed in range(SEEDS)]
    in_set = sum(any(each.is_best and each.streams == best for each in spot.settings) for spot in spots)
    held = sum(spot.gain.low <= true_saving(profile, spot.gain.streams) <= spot.gain.high for spot in spots)
    figures = {
        "helps": float(sum(spot.verdict == "helps" for spot in spots)),
        "settings in the set": sum(each.is_best for spot in spots for each in spot.settings) / SEEDS,
    }
    results = [
        Result(f"{profile}: the best setting is in the set", in_set / SEEDS, 0.95, "higher", figures),
        Result(f"{profile}: 90 % intervals hold the gain", held / SEEDS, 0.85, "higher", figures),
    ]
    if best == max(times):
        results.append(Result(f"{profile}: helps", figures["helps"] / SEEDS, 0.0, "lower", figures))
    return results
