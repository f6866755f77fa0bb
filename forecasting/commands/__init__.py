"""The commands of ``python -m forecasting``, one file each. The folder is the registry.

A command is a module with ``add(subparsers)``, which defines its name and arguments, and ``run(arguments)``,
which prints the result and returns the exit status. For invalid input, ``run`` raises a ``ForecastingError``
with a message of one line.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from forecasting.evaluation.rolling_origin import WARM_UP

if TYPE_CHECKING:
    from argparse import _SubParsersAction

Subparsers: TypeAlias = "_SubParsersAction[ArgumentParser]"


class Command(Protocol):
    """The module of a command."""

    def add(self, subparsers: Subparsers) -> None: ...

    def run(self, arguments: Namespace) -> int: ...


def names() -> list[str]:
    """Return the sorted names of the command modules; on the command line ``_`` is written ``-``."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__))


def load(name: str) -> Command:
    """Return the module of the command *name*, one of ``names()``."""
    return cast("Command", importlib.import_module(f"{__name__}.{name}"))


def add_warm_up(parser: ArgumentParser, usual: int = WARM_UP) -> None:
    """Add the option ``--warm-up``, by default *usual*, which all commands that score forecasts have."""
    parser.add_argument(
        "--warm-up",
        type=whole_number,
        default=usual,
        metavar="N",
        help=f"do not score the first N runs of a series ({usual})",
    )


def whole_number(text: str) -> int:
    """Convert a command-line argument to a whole number; raise ArgumentTypeError for other text."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"expected a whole number from 0, got {text!r}")
    return int(text)


def positive(text: str) -> float:
    """Convert a command-line argument to a number above 0; raise ArgumentTypeError otherwise."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < math.inf:
        raise ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number


def probability(text: str) -> float:
    """Convert a command-line argument to a probability inside (0, 1); raise ArgumentTypeError otherwise."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < 1.0:
        raise ArgumentTypeError(f"expected a number between 0 and 1, got {text!r}")
    return number
