"""What ``python -m forecasting`` can do: one file for each command. The folder is the registry.

A command is a module with ``add(subparsers)``, which says its name and arguments, and ``run(arguments)``,
which prints what it found and returns the exit status. What it cannot work with, it refuses with a
``ForecastingError`` of one line.
"""

from __future__ import annotations

import importlib
import pkgutil
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from forecasting.evaluation.rolling_origin import WARM_UP

if TYPE_CHECKING:
    from argparse import _SubParsersAction

Subparsers: TypeAlias = "_SubParsersAction[ArgumentParser]"


class Command(Protocol):
    def add(self, subparsers: Subparsers) -> None: ...

    def run(self, arguments: Namespace) -> int: ...


def names() -> list[str]:
    """The commands, sorted: every module of this package. On the command line ``_`` is written ``-``."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__))


def load(name: str) -> Command:
    """The module of the command called *name*, one of ``names()``."""
    return cast("Command", importlib.import_module(f"{__name__}.{name}"))


def add_warm_up(parser: ArgumentParser) -> None:
    """The option of those that judge forecasts."""
    parser.add_argument(
        "--warm-up",
        type=whole_number,
        default=WARM_UP,
        metavar="N",
        help=f"do not judge the first N runs of a series ({WARM_UP})",
    )


def whole_number(text: str) -> int:
    """The type of an argument that counts something."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"expected a whole number from 0, got {text!r}")
    return int(text)


def probability(text: str) -> float:
    """The type of an argument that is a probability or a share, but neither none nor all."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < 1.0:
        raise ArgumentTypeError(f"expected a number between 0 and 1, got {text!r}")
    return number
