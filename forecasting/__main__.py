"""Run ``python -m forecasting``: forecast series in files and score the forecasts, without the service."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

# Threads slow many small computations down. Numpy reads these variables when it is imported.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

from forecasting import commands  # noqa: E402
from forecasting.base import ForecastingError  # noqa: E402

REFUSED = 2  # as argparse exits for invalid arguments
INTERRUPTED = 130  # as shells exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in *arguments* and return the exit status."""
    parsed = _parser().parse_args(arguments)
    if sys.stdout is None:
        return _failed(parsed.command, "cannot write: standard output is closed")
    try:
        status: int = parsed.run(parsed)
        sys.stdout.flush()
    except ForecastingError as error:
        return _failed(parsed.command, str(error))
    except KeyboardInterrupt:
        return _failed(parsed.command, "interrupted", INTERRUPTED)
    except OSError as error:  # of writing: the readers convert theirs
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # for the rest of the output, flushed at exit
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            return 0
        return _failed(parsed.command, f"cannot write: {error.strerror}")
    return status


def _failed(command: str, reason: str, status: int = REFUSED) -> int:
    """Print *reason*, with its line breaks removed, on stderr and return *status*."""
    print(f"python -m forecasting {command}: {' '.join(reason.splitlines())}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m forecasting",
        description="Evaluate forecasting methods on files of measurements.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in commands.names():
        command = commands.load(name)
        command.add(subparsers)
        subparsers.choices[name.replace("_", "-")].set_defaults(run=command.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
