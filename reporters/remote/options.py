"""Options that several commands have. Light: every start loads it from the archive."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from reporters.account import expanded, own_home


def default_path(environment: Mapping[str, str]) -> Path:
    """Return ``$XDG_STATE_HOME/gridcast-reporter``, by default ``~/.local/state/gridcast-reporter``."""
    base = environment.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):  # the specification of XDG ignores relative paths
        base = str(own_home() / ".local" / "state")
    return Path(base) / "gridcast-reporter"


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
    return (expanded(options.state) if options.state else default_path(os.environ)).absolute()


def early_state_path(arguments: Sequence[str]) -> Path | None:
    """Return the state directory of the command line *arguments*, which may be invalid; None: it has none."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_state(parser)
    try:
        return state_path(parser.parse_known_args(arguments)[0])
    except (argparse.ArgumentError, RuntimeError):  # of a user without a home directory
        return None
