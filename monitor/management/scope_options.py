"""Command-line options that select a series, a suite, a site or a reporter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from monitor.models.hold import HoldKind, Scope
from monitor.runs.ledger.holds import HoldError, find_scope

if TYPE_CHECKING:
    from argparse import ArgumentParser


def add_scope_options(
    parser: ArgumentParser, kinds: tuple[HoldKind, ...] = tuple(HoldKind), *, required: bool
) -> None:
    """Add the mutually exclusive options ``--series``, ``--suite``, ..."""
    group = parser.add_mutually_exclusive_group(required=required)
    for kind in kinds:
        group.add_argument(f"--{kind}", metavar="NAME", dest=f"of_{kind}")


def scope_from_options(options: dict[str, Any]) -> Scope:
    """Return the selected scope.

    Raises:
        CommandError: no option was given, or the scope does not exist.
    """
    given = [(kind, options[f"of_{kind}"]) for kind in HoldKind if options.get(f"of_{kind}")]
    if not given:
        raise CommandError("expected a series, --suite, --site or --reporter")
    try:
        return find_scope(*given[0])
    except HoldError as error:
        raise CommandError(str(error)) from error
