from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy  # submodules load when used: scipy.stats takes a second

from forecasting.reading.sweeps import Sweep, SweepValue
from forecasting.sweeps.design import TooManyLevels, design_of
from forecasting.sweeps.effects import FlaggedValue, SweepEffects, TooFewCells, effects_of
from tests.forecasting.sweeps.planted import FACTORS, planted


def swept(
    values: Mapping[Any, float], factors: tuple[str, ...], noise: float = 0.01, passes: int = 6
) -> Sweep:
    """Return a sweep with *passes* values of each combination, scattered by relative *noise*."""
    draw = np.random.default_rng(3)
    return Sweep(
        factors,
        {
            levels: [
                SweepValue(number + 1, value * float(np.exp(noise * draw.standard_normal())))
                for number in range(passes)
            ]
            for levels, value in values.items()
        },
    )


def claimed(effects: SweepEffects) -> set[tuple[str, ...]]:
    return {effect.term for effect in effects.terms if effect.is_claimed}


def test_planted_effects_are_found_from_a_quarter_of_the_combinations() -> None:
    sweep = planted(seed=1)
    effects = effects_of(sweep.sweep)
    assert claimed(effects) == {term for term in sweep.effects if sweep.size(term) > 1.05}
    assert effects.cells == effects.possible_cells / 4
    for effect in effects.terms:
        for level in effect.levels if effect.term in sweep.effects else ():
            place = tuple(FACTORS[name].index(of) for name, of in zip(effect.term, level.levels, strict=True))
            assert level.ratio == pytest.approx(float(np.exp(sweep.effects[effect.term][place])), rel=0.02)


def test_false_discoveries_are_controlled_as_by_scipy() -> None:
    terms = effects_of(planted(seed=1).sweep).terms
    expected = scipy.stats.false_discovery_control([term.p_value for term in terms])
    assert [term.q_value for term in terms] == pytest.approx(expected, rel=1e-9)


def test_the_best_combination_need_not_be_measured() -> None:
    sweep = planted(seed=2)
    choice = effects_of(sweep.sweep).choice
    assert sweep.value(choice.levels) > 0.98
    assert choice.over_mean > 1.0


def test_noise_alone_gives_no_effect() -> None:
    cells = dict.fromkeys(product("abcd", "xy", "12"), 100.0)
    assert claimed(effects_of(swept(cells, ("letter", "axis", "number"), noise=0.05))) == set()


def test_the_levels_that_cannot_be_told_from_the_best_are_named_with_it() -> None:
    cells = {
        (width, fs): value
        for fs in ("raw", "xfs")
        for width, value in [("1", 50.0), ("8", 100.0), ("16", 100.2)]
    }
    width, *_ = effects_of(swept(cells, ("width", "fs"))).terms
    assert width.term == ("width",)
    assert set(width.best) == {"8", "16"}
    assert [level.levels for level in width.levels] == [("1",), ("8",), ("16",)]


def test_where_lower_is_better_the_smallest_value_is_the_choice() -> None:
    cells = {(width, fs): value for fs in ("raw", "xfs") for width, value in [("1", 50.0), ("8", 100.0)]}
    sweep = swept(cells, ("width", "fs"))
    assert effects_of(sweep, "lower").choice.levels["width"] == "1"
    assert effects_of(sweep, "higher").choice.levels["width"] == "8"


def test_factors_that_were_always_changed_together_are_not_told_apart() -> None:
    cells = {
        ("1", "off", "raw"): 1.0,
        ("2", "on", "raw"): 2.0,
        ("1", "off", "xfs"): 1.0,
        ("2", "on", "xfs"): 2.0,
    }
    effects = effects_of(swept(cells, ("width", "cache", "fs")))
    assert ("cache",) in effects.left_out
    assert {effect.term for effect in effects.terms} == {("width",), ("fs",), ("width", "fs")}


def test_values_without_any_noise_give_exact_effects() -> None:
    cells = {(width, fs): value for fs in ("raw", "xfs") for width, value in [("1", 50.0), ("2", 200.0)]}
    effects = effects_of(swept(cells, ("width", "fs"), noise=0.0))
    assert claimed(effects) == {("width",)}
    assert effects.terms[0].size == pytest.approx(4.0)


def test_an_outlier_is_flagged_and_moves_its_combination_little() -> None:
    cells = dict.fromkeys(product("ab", "xy", "12"), 100.0)
    sweep = swept(cells, ("letter", "axis", "number"))
    values = sweep.cells["a", "x", "1"]
    assert isinstance(values, list)
    values[3] = SweepValue(4, 1000.0)
    effects = effects_of(sweep)
    flagged = effects.flags.flagged_values
    assert effects.flags.flagged == len(flagged)
    assert FlaggedValue(4, {"letter": "a", "axis": "x", "number": "1"}, 1000.0) in flagged
    assert effects.flags.expected == pytest.approx(8 * 5 * 0.027, rel=0.1)
    assert max(abs(level.ratio - 1) for effect in effects.terms for level in effect.levels) < 0.01


def test_one_value_for_each_combination_leaves_pairs_out_to_estimate_the_error_from() -> None:
    cells = dict.fromkeys(product("abc", "xy"), 100.0)
    effects = effects_of(swept(cells, ("letter", "axis"), passes=2))
    assert effects.left_out == [("letter", "axis")]
    assert effects.noise is None  # of one value
    assert {effect.term for effect in effects.terms} == {("letter",), ("axis",)}


def test_one_value_for_each_level_of_the_only_factor_is_refused() -> None:
    with pytest.raises(TooFewCells, match="3 combinations of levels"):
        effects_of(swept({("a",): 100.0, ("b",): 101.0, ("c",): 102.0}, ("letter",), passes=2))


def test_a_pair_with_too_many_levels_is_left_out() -> None:
    cells = dict.fromkeys(product(map(str, range(40)), map(str, range(30))), 100.0)
    effects = effects_of(swept(cells, ("depth", "size"), passes=3))
    assert effects.left_out == [("depth", "size")]  # 39 x 29 columns


def test_the_levels_of_all_factors_are_limited_by_the_memory_of_a_model() -> None:
    levels = {"run": [str(number) for number in range(900)], "size": ["1", "2"]}
    cells = [(str(number % 900), str(number % 2 + 1)) for number in range(30_000)]
    with pytest.raises(TooManyLevels, match=r"902 levels are too many .* 30000 combinations; run has"):
        design_of(levels, cells, len(cells))
