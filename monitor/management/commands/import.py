"""``manage.py import KIND FILE --series NAME``: import what other systems measured."""  # noqa: N999

from __future__ import annotations

import os
import sys
import time
from argparse import RawDescriptionHelpFormatter
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError

from monitor.models.series import Measures
from monitor.runs.imports import formats
from monitor.runs.imports.formats.base import ImporterError, MalformedRecord, Unreadable
from monitor.runs.imports.formats.opening import STDIN, open_input
from monitor.runs.imports.formats.text import printable
from monitor.runs.imports.preview import SeriesPreview, preview
from monitor.runs.imports.run import ImportListener, ImportStopped, ImportTally, import_history
from monitor.runs.imports.targets import ImportRefused, Target
from monitor.runs.ingest.disk_guard import DepotFull

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from typing import BinaryIO

    from monitor.runs.imports.formats.base import Importer, Option

MAX_SHOWN = 20  # malformed records
PROGRESS_SECONDS = 2.0
ABOUT = """Stores runs that other systems measured as runs of series (docs/importing.md). Importing a file
again changes nothing, so repeat an import that was interrupted. Malformed records are reported and counted;
all other records are imported."""


class Command(BaseCommand):
    help = "Import measurements of other systems: " + ", ".join(formats.names()) + " (docs/importing.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
        for kind in formats.names():
            importer = formats.load(kind)
            subparser = kinds.add_parser(
                kind,
                help=importer.summary,
                description=f"{importer.summary}\n\n{ABOUT}",
                epilog=_example(kind, importer),
                formatter_class=RawDescriptionHelpFormatter,
            )
            _add_common(subparser)
            group = subparser.add_argument_group(f"options of {kind}")
            for name, option in importer.options.items():
                group.add_argument(
                    f"--{name.replace('_', '-')}",
                    default=option.default,
                    metavar=option.metavar,
                    help=_help(option).replace("%", "%%"),
                )

    def handle(self, *, kind: str, file: str, **options: Any) -> None:
        self._started = self._reported = time.monotonic()
        self._shown_count, self._stored = 0, 0
        name = "standard input" if file == STDIN else _printable_name(file)
        try:
            target = Target(kind, options["series"], options["suite"], options["site"], options["as"] or "")
            importer = formats.create_importer(
                kind, {name: options[name] for name in formats.load(kind).options}
            )
            with open_input(file, sys.stdin.buffer if sys.stdin else None) as stream:
                self._run(importer, stream, target, name, options)
        except (DepotFull, OperationalError, InterfaceError) as error:
            message = error if isinstance(error, DepotFull) else f"depot unavailable: {_first_line(error)}"
            raise CommandError(f"{message}; {self._imported()}, run it again later") from error
        except OSError as error:
            raise CommandError(f"{name}: {error.strerror or error}") from error
        except ImportStopped as error:
            raise CommandError(f"{name}: stopped at {error}; {self._imported()}") from error
        except Unreadable as error:
            before = f"; {self._imported()}" if self._stored else ""
            raise CommandError(f"{name}: {error}{before}") from error
        except (ImporterError, ImportRefused) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError(
                f"{name}: interrupted; {self._imported()}, run it again", returncode=130
            ) from None

    def _run(
        self, importer: Importer, stream: BinaryIO, target: Target, file: str, options: dict[str, Any]
    ) -> None:
        listener = ImportListener(self._malformed(file), self._progress)
        strict = options["strict"]
        if options["dry_run"]:
            previews, tally = preview(importer, stream, target, listener, strict=strict)
            self._show(previews)
        else:
            tally = import_history(importer, stream, target, file, listener, strict=strict)
        if not (tally.runs or tally.malformed or tally.skipped):
            raise CommandError(f"{file}: the file is empty")
        seconds = time.monotonic() - self._started
        self.stdout.write(_summary(file, tally, seconds, is_dry_run=options["dry_run"]))
        if tally.malformed:
            imported = "nothing is imported" if options["dry_run"] else f"{tally.runs} runs are imported"
            raise CommandError(f"{file}: {tally.malformed} malformed records; {imported}")

    def _malformed(self, file: str) -> Any:
        def show(record: MalformedRecord) -> None:
            self._shown_count += 1
            if self._shown_count <= MAX_SHOWN:
                self.stderr.write(f"{file}: {record}")
            elif self._shown_count == MAX_SHOWN + 1:
                self.stderr.write("... further malformed records are only counted")

        return show

    def _imported(self) -> str:
        return f"the {self._stored:,} runs before are imported" if self._stored else "nothing is imported"

    def _progress(self, tally: ImportTally) -> None:
        self._stored = tally.runs
        now = time.monotonic()
        if now - self._reported >= PROGRESS_SECONDS:
            self._reported = now
            rate = tally.runs / (now - self._started)
            self.stderr.write(f"  {tally.new:,} new, {tally.known:,} known, {rate:,.0f} runs/s")

    def _show(self, previews: dict[str, SeriesPreview]) -> None:
        for name, series in sorted(previews.items()):
            outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(series.outcomes.items()))
            self.stdout.write(
                f"{name}: {outcomes}, {series.first:%Y-%m-%d %H:%M:%S} to {series.last:%Y-%m-%d %H:%M:%S} UTC"
            )
            self.stdout.write(
                "    " + ", ".join(f"{metric} [{unit}]" for metric, unit in sorted(series.units.items()))
            )


def _printable_name(file: str) -> str:
    """Return the name of *file* as printable text that the depot can store."""
    return printable(os.fsencode(file).decode("utf-8", "backslashreplace"))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _help(option: Option) -> str:
    choices = f": {', '.join(option.choices)}" if option.choices else ""
    default = f" (default: {option.default})" if option.default else ""
    return f"{option.description}{choices}{default}"


def _add_common(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="input file, plain or compressed by gzip or zstd; - is standard input"
    )
    parser.add_argument(
        "--series", required=True, metavar="NAME", help="name of the series, or prefix of the names"
    )
    parser.add_argument("--suite", default="imported", metavar="NAME", help="suite of new series (imported)")
    parser.add_argument(
        "--site",
        default="",
        metavar="NAME",
        help="measured site (default: from the data, or none)",
    )
    parser.add_argument(
        "--as",
        choices=Measures.values,
        help="kind of new series; applications are forecast from grid probes (default: by the kind of data)",
    )
    parser.add_argument("--dry-run", action="store_true", help="report what would be created; create nothing")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="stop at the first refused record; import only the records before it",
    )


def _example(kind: str, importer: type[Importer]) -> str:
    options = "".join(
        f" --{name.replace('_', '-')} {value}" for name, value in importer.example.options.items()
    )
    data = "".join(f"  {line}\n" for line in importer.example.data.decode().splitlines())
    command = f"manage.py import {kind} FILE --series NAME{options}"
    return f"example:\n  {command}\n\nwith a FILE such as\n{data}"


def _summary(file: str, tally: ImportTally, seconds: float, *, is_dry_run: bool) -> str:
    skipped = "".join(f"; {count:,} skipped: {reason}" for reason, count in tally.skipped.most_common())
    differing = f" ({tally.differing:,} differ from the stored runs, which stay)" if tally.differing else ""
    stored = f"{tally.new:,} new, {tally.known:,} known{differing}"
    runs = f"{tally.new:,} runs, none stored" if is_dry_run else stored
    rate = f"in {seconds:,.1f} s ({tally.runs / max(seconds, 1e-3):,.0f} runs/s)"
    return f"{file}: {runs}, {tally.malformed:,} malformed, {len(tally.series)} series {rate}{skipped}"
