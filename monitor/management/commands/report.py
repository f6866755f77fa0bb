"""``manage.py report study|storage``: published tables, repeated with the runs in the depot."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.depot.samples.sample_arrays import TooManySamples
from monitor.operations.embedded import EmbeddedError
from monitor.operations.serving.depot_server import depot_server
from monitor.operations.supervisor import NotUp
from monitor.testbed.errors import TestbedError
from monitor.testbed.storage import build
from monitor.testbed.storage.published import TABLES, virtual_values
from monitor.testbed.storage.rates_virtual import PROFILES_WITH_RATES, virtual_rates
from monitor.web.reports.files import NotWritten, check_writable, write_all
from monitor.web.reports.pdf import PdfUnavailable, pdf_renderer
from monitor.web.reports.published_numbers import GRIDS
from monitor.web.reports.render import (
    storage_csv,
    storage_document,
    storage_html,
    storage_text,
    study_document,
    study_html,
    study_text,
)
from monitor.web.reports.storage_report import Emulated, StorageReport, storage_report
from monitor.web.reports.study_report import NoRuns, StudyRequest, study_report

if TYPE_CHECKING:
    from argparse import ArgumentParser

MOST_DAYS = 36_500
ENOUGH_RUNS = "manage.py demo --rounds 130 --scale 40 --exit"


class Command(BaseCommand):
    help = (
        "Make a report. study: the tables and figures of the study of two grids, beside its numbers. "
        "storage: published tables about storage, beside those of the depot's storage areas."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        usual = StudyRequest()
        parser.add_argument("what", choices=["study", "storage"])
        parser.add_argument(
            "--grid",
            choices=sorted(GRIDS),
            help="whose published numbers stand beside (default: the one whose weather the demo has)",
        )
        parser.add_argument("--html", type=Path, metavar="FILE", help="write one HTML file, figures included")
        parser.add_argument("--pdf", type=Path, metavar="FILE", help="write a PDF file")
        parser.add_argument("--csv", type=Path, metavar="FILE", help="storage: write all tables as CSV")
        parser.add_argument(
            "--application", default=usual.application, help=f"name of the application ({usual.application})"
        )
        parser.add_argument(
            "--probe", default=usual.probe, help=f"name of the predicting probe ({usual.probe})"
        )
        parser.add_argument("--days", type=float, help="only runs of the last DAYS days (default: all)")
        parser.add_argument(
            "--warm-up",
            type=int,
            default=usual.warm_up,
            help=f"first runs per series that are not scored ({usual.warm_up})",
        )
        parser.add_argument("--json", action="store_true", help="print every figure as JSON")

    def handle(
        self, *, what: str, html: Path | None, pdf: Path | None, csv: Path | None, **options: Any
    ) -> None:
        if what == "study" and csv:
            raise CommandError("--csv: the study has no CSV; expected --html, --pdf or --json")
        formats = _formats(html, pdf)
        if csv:
            _check(csv)
        made = self._storage(timezone.now()) if what == "storage" else _study(timezone.now(), options)
        files = {file: content(made.html) for file, content in formats.items()} if formats else {}
        if csv:
            files[csv] = made.csv.encode()
        _write(files)
        if options["json"]:
            self.stdout.write(json.dumps(made.document, indent=2, allow_nan=False))
        elif not files:
            self.stdout.write(made.text)
        else:
            self.stdout.write("\n".join(f"{file}: written" for file in files))

    def _storage(self, now: datetime) -> MadeReport:
        emulated = _emulated()
        try:
            with depot_server(settings.VAR_DIR):
                report = storage_report(now, emulated)
        except (EmbeddedError, NotUp) as error:
            report = StorageReport(now, emulated, depot_problem=str(error))
        if report.depot_problem:
            self.stderr.write(f"No depot was read: {report.depot_problem}")
        return MadeReport(
            storage_text(report), storage_html(report), storage_document(report), storage_csv(report)
        )


@dataclass(frozen=True)
class MadeReport:
    """One report in each of its forms."""

    text: str
    html: str
    document: Mapping[str, Any]
    csv: str = ""


def _study(now: datetime, options: Mapping[str, Any]) -> MadeReport:
    since = _days_ago(options["days"])
    request = StudyRequest(
        options["application"],
        options["probe"],
        options["grid"],
        None if since is None else now - since,
        _warm_up(options["warm_up"]),
    )
    try:
        with depot_server(settings.VAR_DIR):  # the demo may have ended
            report = study_report(request, now)
    except (EmbeddedError, NotUp) as error:
        raise CommandError(str(error)) from error
    except NoRuns as error:
        raise CommandError(f"{error}; `{ENOUGH_RUNS}` makes enough runs") from error
    except TooManySamples as error:
        raise CommandError(f"a metric has {error}: --days chooses fewer runs") from error
    return MadeReport(study_text(report), study_html(report), study_document(report))


def _emulated() -> Emulated:
    with tempfile.TemporaryDirectory(prefix="gridcast-model-") as directory:
        try:
            library = build.model_library(Path(directory))
        except TestbedError:
            return Emulated()
        return Emulated(
            {profile: virtual_values(profile, library) for profile in TABLES},
            {profile: virtual_rates(profile, library) for profile in PROFILES_WITH_RATES},
        )


def _days_ago(days: float | None) -> timedelta | None:
    if days is not None and not 0 < days <= MOST_DAYS:
        raise CommandError(f"--days: expected more than 0 and at most {MOST_DAYS}, got {days:g}")
    return None if days is None else timedelta(days=days)


def _warm_up(runs: int) -> int:
    if runs < 0:
        raise CommandError(f"--warm-up: expected 0 or more, got {runs}")
    return runs


def _formats(html: Path | None, pdf: Path | None) -> dict[Path, Callable[[str], bytes]]:
    """Return for each file how its content is made of the HTML.

    Raises:
        CommandError: a file cannot be written, or PDF cannot be made on this machine.
    """
    if html and pdf and html.resolve() == pdf.resolve():
        raise CommandError(f"--html and --pdf: expected two files, got {html} twice")
    formats: dict[Path, Callable[[str], bytes]] = {}
    try:
        if html:
            formats[html] = str.encode
        if pdf:
            formats[pdf] = pdf_renderer()
    except PdfUnavailable as error:
        raise CommandError(str(error)) from error
    for file in formats:
        _check(file)
    return formats


def _check(file: Path) -> None:
    try:
        check_writable(file)
    except NotWritten as error:
        raise CommandError(str(error)) from error


def _write(files: Mapping[Path, bytes]) -> None:
    try:
        write_all(files)
    except NotWritten as error:
        raise CommandError(str(error)) from error
