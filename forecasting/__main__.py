"""``python -m forecasting``: the forecasters at work on files, without a service."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

# Of many small computations threads only get in each other's way. Numpy looks when it is imported.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

from forecasting import commands  # noqa: E402
from forecasting.base import ForecastingError  # noqa: E402

REFUSED = 2  # as argparse has it for arguments that make no sense
INTERRUPTED = 130  # as shells have it


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what *arguments* say, and return the exit status."""
    told = _parser().parse_args(arguments)
    if sys.stdout is None:
        return _ended(told.command, "cannot write: standard output is closed")
    try:
        status: int = told.run(told)
        sys.stdout.flush()
    except ForecastingError as error:
        return _ended(told.command, str(error))
    except KeyboardInterrupt:
        return _ended(told.command, "interrupted", INTERRUPTED)
    except OSError as error:  # of writing: whoever reads has made the others his own
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to flush at the end
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            return 0
        return _ended(told.command, f"cannot write: {error.strerror}")
    return status


def _ended(command: str, why: str, status: int = REFUSED) -> int:
    """Say *why* in one line, whatever names are in it."""
    print(f"python -m forecasting {command}: {' '.join(why.splitlines())}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m forecasting",
        description="What forecasts are worth, found out on files of measurements.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in commands.names():
        command = commands.load(name)
        command.add(subparsers)
        subparsers.choices[name.replace("_", "-")].set_defaults(run=command.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
