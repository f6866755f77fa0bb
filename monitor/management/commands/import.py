"""``manage.py import KIND FILE --series NAME``: take over what others measured."""  # noqa: N999

from __future__ import annotations

import os
import sys
import time
from argparse import RawDescriptionHelpFormatter
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError

from monitor.imports import formats
from monitor.imports.formats.base import ImporterError, Malformed, Unreadable
from monitor.imports.formats.opening import STDIN, opened
from monitor.imports.formats.text import printable
from monitor.imports.preview import Preview, preview
from monitor.imports.run import Listener, Stopped, Tally, import_history
from monitor.imports.targets import NotImported, Target
from monitor.ingest.disk_guard import DepotFull
from monitor.models.series import Measures

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from typing import BinaryIO

    from monitor.imports.formats.base import Importer, Option

MOST_SHOWN = 20  # of what cannot be read
PROGRESS_SECONDS = 2.0
ABOUT = """Runs that others measured become runs of series here (docs/importing.md). Importing a file again
changes nothing, so one that was interrupted is begun anew; a line that cannot be read is named, and the
others are imported all the same."""


class Command(BaseCommand):
    help = "Import what others measured: " + ", ".join(formats.names()) + " (docs/importing.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
        for kind in formats.names():
            importer = formats.load(kind)
            one = kinds.add_parser(
                kind,
                help=importer.summary,
                description=f"{importer.summary}\n\n{ABOUT}",
                epilog=_example(kind, importer),
                formatter_class=RawDescriptionHelpFormatter,
            )
            _add_common(one)
            group = one.add_argument_group(f"what {kind} means")
            for name, option in importer.options.items():
                group.add_argument(
                    f"--{name.replace('_', '-')}",
                    default=option.default,
                    metavar=option.metavar,
                    help=_told(option).replace("%", "%%"),
                )

    def handle(self, *, kind: str, file: str, **options: Any) -> None:
        self._began = self._told = time.monotonic()
        self._shown, self._stored = 0, 0
        name = "standard input" if file == STDIN else _shown(file)
        try:
            target = Target(kind, options["series"], options["suite"], options["site"], options["as"] or "")
            importer = formats.made(kind, {name: options[name] for name in formats.load(kind).options})
            with opened(file, sys.stdin.buffer if sys.stdin else None) as stream:
                self._run(importer, stream, target, name, options)
        except (DepotFull, OperationalError, InterfaceError) as error:
            why = error if isinstance(error, DepotFull) else f"the depot is away: {_first_line(error)}"
            raise CommandError(f"{why}; {self._stays()}, run it again then") from error
        except OSError as error:
            raise CommandError(f"{name}: {error.strerror or error}") from error
        except Stopped as error:
            raise CommandError(f"{name}: stopped at {error}; {self._stays()}, nothing behind it") from error
        except Unreadable as error:
            before = f"; {self._stored:,} before it are imported" if self._stored else ""
            raise CommandError(f"{name}: {error}{before}") from error
        except (ImporterError, NotImported) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError(
                f"{name}: interrupted; {self._stays()}, run it again", returncode=130
            ) from None

    def _run(
        self, importer: Importer, stream: BinaryIO, target: Target, file: str, options: dict[str, Any]
    ) -> None:
        listener = Listener(self._malformed(file), self._progress)
        strict = options["strict"]
        if options["dry_run"]:
            found, tally = preview(importer, stream, target, listener, strict=strict)
            self._show(found)
        else:
            tally = import_history(importer, stream, target, file, listener, strict=strict)
        if not (tally.runs or tally.malformed or tally.left_out):
            raise CommandError(f"{file}: there is nothing in it")
        self.stdout.write(_summary(file, tally, time.monotonic() - self._began, dry=options["dry_run"]))
        if tally.malformed:
            others = "nothing is imported" if options["dry_run"] else f"{tally.runs} others are imported"
            raise CommandError(f"{file}: {tally.malformed} could not be read; {others}")

    def _malformed(self, file: str) -> Any:
        def show(one: Malformed) -> None:
            self._shown += 1
            if self._shown <= MOST_SHOWN:
                self.stderr.write(f"{file}: {one}")
            elif self._shown == MOST_SHOWN + 1:
                self.stderr.write("... and more, which are counted")

        return show

    def _stays(self) -> str:
        return f"{self._stored:,} before that are imported" if self._stored else "nothing is imported"

    def _progress(self, tally: Tally) -> None:
        self._stored = tally.runs
        now = time.monotonic()
        if now - self._told >= PROGRESS_SECONDS:
            self._told = now
            rate = tally.runs / (now - self._began)
            self.stderr.write(f"  {tally.new:,} new, {tally.known:,} known, {rate:,.0f} runs/s")

    def _show(self, found: dict[str, Preview]) -> None:
        for name, one in sorted(found.items()):
            outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(one.outcomes.items()))
            self.stdout.write(
                f"{name}: {outcomes}, {one.first:%Y-%m-%d %H:%M:%S} to {one.last:%Y-%m-%d %H:%M:%S} UTC"
            )
            self.stdout.write(
                "    " + ", ".join(f"{metric} [{unit}]" for metric, unit in sorted(one.units.items()))
            )


def _shown(file: str) -> str:
    """The name of *file* for people and for the depot, whatever bytes it is of."""
    return printable(os.fsencode(file).decode("utf-8", "backslashreplace"))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _told(option: Option) -> str:
    choices = f": {', '.join(option.choices)}" if option.choices else ""
    default = f" (default: {option.default})" if option.default else ""
    return f"{option.description}{choices}{default}"


def _add_common(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="what to import, gzip or zstd or neither; - is standard input"
    )
    parser.add_argument(
        "--series", required=True, metavar="NAME", help="name of the series, or how the names of all begin"
    )
    parser.add_argument("--suite", default="imported", metavar="NAME", help="suite of new series (imported)")
    parser.add_argument(
        "--site",
        default="",
        metavar="NAME",
        help="site that was measured (default: as the data say, or none)",
    )
    parser.add_argument(
        "--as",
        choices=Measures.values,
        help="what new series tell of: applications are forecast from probes (default: as the kind of data)",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be made; make nothing")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="stop at the first that is refused: what comes before it is imported, nothing behind it",
    )


def _example(kind: str, importer: type[Importer]) -> str:
    options = "".join(
        f" --{name.replace('_', '-')} {value}" for name, value in importer.example.options.items()
    )
    data = "".join(f"  {line}\n" for line in importer.example.data.decode().splitlines())
    command = f"manage.py import {kind} FILE --series NAME{options}"
    return f"for example:\n  {command}\n\nwhere FILE is such as\n{data}"


def _summary(file: str, tally: Tally, seconds: float, *, dry: bool) -> str:
    left_out = "".join(f"; {count:,} left out: {why}" for why, count in tally.left_out.most_common())
    differing = f" ({tally.differing:,} differ from what is there, which stays)" if tally.differing else ""
    new = f"{tally.new:,} runs, none made" if dry else f"{tally.new:,} new, {tally.known:,} known{differing}"
    rate = f"in {seconds:,.1f} s ({tally.runs / max(seconds, 1e-3):,.0f} runs/s)"
    return f"{file}: {new}, {tally.malformed:,} malformed, {len(tally.series)} series {rate}{left_out}"
