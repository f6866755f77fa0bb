"""Options that several commands have."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from reporters.remote.state_directory import default_path


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add ``--state DIR`` to *parser*."""
    parser.add_argument(
        "--state",
        metavar="DIR",
        default="",
        help="directory of the reporter's files (default: ~/.local/state/gridcast-reporter)",
    )


def state_path(options: argparse.Namespace) -> Path:
    """Return the state directory that *options* name, or the default; absolute."""
    return Path(options.state or default_path(os.environ)).expanduser().absolute()
