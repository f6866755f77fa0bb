"""``manage.py grid``: the configuration of the grid as one file under version control."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from monitor.core.yamlfile.problems import InvalidYamlFile
from monitor.management.caller import caller_name
from monitor.models import Series
from monitor.operations.gridfile import applying, depot, examples, exporting, loading, planning, reference
from monitor.operations.gridfile.loading import STDIN, DepotNames
from monitor.operations.gridfile.problems import NOUNS
from monitor.runs.ledger.holds import RunHeld
from monitor.runs.ledger.run_now import run_now

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence

    from monitor.operations.gridfile.planning import Plan

CHANGES = 2  # exit status of ``plan --exit-code`` if there are changes


class Command(BaseCommand):
    help = "Validate, plan, apply and export grid files (docs/grid-file.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        validate = verbs.add_parser("validate", help="report all errors of a file")
        validate.add_argument(
            "--alone",
            action="store_true",
            help="check without a depot: accept all names of reporters and user groups",
        )
        plan = verbs.add_parser("plan", help="show what applying a file would change; change nothing")
        plan.add_argument(
            "--exit-code", action="store_true", help=f"exit with {CHANGES} if there are changes"
        )
        apply = verbs.add_parser("apply", help="apply a file to the depot in one transaction")
        apply.add_argument("--run", action="store_true", help="run each new series once, now")
        for verb in (plan, apply):
            verb.add_argument("--prune", action="store_true", help="remove what is not in the file")
        export = verbs.add_parser("export", help="write the grid of the depot to a file")
        for verb in (validate, plan, apply, export):
            verb.add_argument("file", metavar="FILE", help="a grid file; - for standard input or output")
        example = verbs.add_parser("example", help="print an example of a grid file")
        example.add_argument("name", choices=examples.names())
        verbs.add_parser("schema", help="print the JSON Schema of grid files")
        verbs.add_parser("reference", help="print the reference page of grid files")

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            getattr(self, f"_{verb}")(**options)
        except InvalidYamlFile as error:
            self.stderr.write(str(error))
            sys.exit(1)
        except BrokenPipeError:  # of standard output; manage.py ends
            raise
        except OSError as error:
            raise CommandError(f"{options['file']}: {error.strerror}") from error

    def _validate(self, *, file: str, alone: bool, **_: Any) -> None:
        grid = loading.load(file, DepotNames() if alone else depot.names())
        counts = ", ".join(f"{len(getattr(grid, noun))} {noun}" for noun in NOUNS)
        self.stdout.write(f"Valid: {counts}.")

    def _plan(self, *, file: str, prune: bool, exit_code: bool, **_: Any) -> None:
        plan = applying.plan_file(file, prune=prune)
        self._show(plan)
        if exit_code and plan.changes():
            sys.exit(CHANGES)

    def _apply(self, *, file: str, prune: bool, run: bool, **_: Any) -> None:
        plan = applying.apply(file, prune=prune)
        self._show(plan)
        if run:
            self._run(plan.new_series())

    def _run(self, names: Sequence[str]) -> None:
        """Request a run of each of the series *names*."""
        for series in Series.objects.filter(name__in=names).order_by("sort_name"):
            try:
                run_now(series, who=caller_name(), why="first run")
            except RunHeld as error:
                self.stdout.write(f"{series.name}: not run: {error}")
            else:
                self.stdout.write(f"{series.name}: its first run is requested")

    def _export(self, *, file: str, **_: Any) -> None:
        text = exporting.to_yaml(depot.read())
        if file == STDIN:
            self.stdout.write(text, ending="")
        else:
            exporting.save(text, Path(file))
        loading.parse(
            text.encode(), file, depot.names()
        )  # pages and commands can create names that no file allows

    def _example(self, *, name: str, **_: Any) -> None:
        self.stdout.write(examples.path(name).read_text(encoding="utf-8"), ending="")

    def _schema(self, **_: Any) -> None:
        self.stdout.write(reference.schema(), ending="")

    def _reference(self, **_: Any) -> None:
        self.stdout.write(reference.page(), ending="")

    def _show(self, plan: Plan) -> None:
        self.stdout.write(planning.format_plan(plan))
