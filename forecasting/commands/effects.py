"""The command ``effects``: tell which factors of a sweep matter, by how much, and which levels are best."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from forecasting.base import ForecastingError
from forecasting.commands import Subparsers, whole_number
from forecasting.reading import sweeps
from forecasting.sweeps import effects
from forecasting.sweeps.design import TooManyLevels
from forecasting.sweeps.effects import FlaggedValue, SweepEffects, TermEffect

DESCRIPTION = """\
Estimates the effect of each factor and of each pair of factors on a measured value, in per cent, with 95 %
intervals. At most 5 % of the effects that are claimed are chance. Names the best level of each factor, and
the levels that cannot be told from it."""
EPILOG = """\
FILE.csv has the columns pass (from 1) and value (positive); each other column is a factor, but for the
marks of `manage.py sweep`: set_aside, outlier and steady. A pass measures each combination of levels once, in
a random order. Not all combinations are needed.

The first pass is compared with the others, reported, and set aside. Values that stand out by Chauvenet's
criterion stay; they have little influence, because a combination is represented by the median of the means of
all pairs of its values. Effects are ratios: +10 % means 1.10 times the mean over all levels of the
factor."""
SHOWN_LEVELS = 8
SHOWN_FLAGGED = 10


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "effects",
        help="estimate the effects of the factors of a sweep",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.csv")
    parser.add_argument("--value", default="value", metavar="COLUMN", help="what was measured (value)")
    parser.add_argument(
        "--factors", type=_names, metavar="NAME,...", help="columns that are factors (all other columns)"
    )
    parser.add_argument(
        "--lower-is-better", action="store_true", help="the best value is the smallest: seconds, not rates"
    )
    parser.add_argument(
        "--levels",
        type=whole_number,
        default=SHOWN_LEVELS,
        metavar="N",
        help=f"print at most N levels of an effect ({SHOWN_LEVELS})",
    )
    parser.add_argument("--json", action="store_true", help="print one document instead of tables")


def run(arguments: Namespace) -> int:
    sweep = sweeps.read(arguments.file, arguments.value, arguments.factors)
    try:
        found = effects.effects_of(sweep, "lower" if arguments.lower_is_better else "higher")
    except (effects.TooFewCells, TooManyLevels) as error:
        raise ForecastingError(f"{arguments.file}: {error}") from None
    if arguments.json:
        print(json.dumps(_document(found), indent=2, allow_nan=False))
    else:
        print("\n".join(_lines(arguments.file, found, arguments.levels)))
    return 0


def _document(found: SweepEffects) -> dict[str, object]:
    claimed = {":".join(effect.term): effect.is_claimed for effect in found.terms}
    document = asdict(found)
    for effect in document["terms"]:
        effect["is_claimed"] = claimed[":".join(effect["term"])]
    return document


def _lines(file: str, found: SweepEffects, most_levels: int) -> Iterator[str]:
    noise = "unknown" if found.noise is None else f"{found.noise:.1%}"
    yield (
        f"{file}: {found.cells} of {found.possible_cells} combinations, {found.passes} passes; "
        f"noise of one value {noise}"
    )
    yield from _passes(found)
    yield ""
    yield f"{'effect':<44} {'size':>9} {'q':>8}"
    for effect in found.terms:
        yield from _of_term(effect, most_levels)
    for term in found.left_out:
        yield f"{' x '.join(term):<44} {'-':>9}   not estimated: too few combinations tell its levels apart"
    yield ""
    combination = ", ".join(f"{factor} {level}" for factor, level in found.choice.levels.items())
    measured = "" if found.choice.is_measured else " (not measured)"
    yield f"best combination by the model: {combination}{measured}"
    yield f"  expected value {found.choice.value:.6g}, {_per_cent(found.choice.over_mean)} against the mean"


def _passes(found: SweepEffects) -> Iterator[str]:
    first = found.first_pass
    if first is None:
        yield "first pass: set aside; too few combinations were measured in it to compare it"
    else:
        verdict = "different" if first.p_value <= effects.FALSE_DISCOVERIES else "not different"
        yield (
            f"first pass: set aside; {verdict}: {_per_cent(first.ratio)} {_interval(first.low, first.high)} "
            f"against later ones, p = {first.p_value:.2g}, {first.n} combinations"
        )
    flags = found.flags
    yield f"outliers: {flags.flagged} of {flags.values} values; noise alone gives {flags.expected:.0f}"
    yield from _flagged(flags.flagged_values)
    if found.unsteady_cells is not None:
        yield f"not in a steady state: {found.unsteady_cells} combinations"


def _flagged(values: Sequence[FlaggedValue]) -> Iterator[str]:
    if len(values) > SHOWN_FLAGGED:
        yield "  (--json lists them)"
        return
    for flagged in values:
        levels = ", ".join(f"{factor} {level}" for factor, level in flagged.levels.items())
        yield f"  pass {flagged.pass_number}, {levels}: {flagged.value:.6g}"


def _of_term(effect: TermEffect, most_levels: int) -> Iterator[str]:
    claim = "" if effect.is_claimed else "   may be chance"
    yield f"{' x '.join(effect.term):<44} {effect.size - 1:>9.1%} {effect.q_value:>8.2g}{claim}"
    if not effect.is_claimed:
        return
    strongest = sorted(effect.levels, key=lambda level: abs(level.ratio - 1), reverse=True)[:most_levels]
    for level in sorted(strongest, key=effect.levels.index):
        mark = "" if not effect.best else "   best" if level.levels[0] in effect.best else ""
        yield (
            f"  {', '.join(level.levels):<42} {_per_cent(level.ratio):>9} "
            f"{_interval(level.low, level.high)}{mark}"
        )
    if len(effect.levels) > len(strongest):
        yield f"  and {len(effect.levels) - len(strongest)} weaker ones (--levels)"


def _per_cent(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"


def _interval(low: float, high: float) -> str:
    return f"[{_per_cent(low)}, {_per_cent(high)}]"


def _names(text: str) -> Sequence[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise ArgumentTypeError(f"expected different names of columns, separated by commas, got {text!r}")
    return names
