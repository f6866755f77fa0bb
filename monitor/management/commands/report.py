"""``manage.py report study``: repeat the study of two grids with the runs in the depot."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.depot.samples.sample_arrays import TooManySamples
from monitor.embedded import EmbeddedError
from monitor.reports.files import NotWritten, check_writable, write_all
from monitor.reports.pdf import PdfUnavailable, pdf_renderer
from monitor.reports.published_numbers import GRIDS
from monitor.reports.render import study_document, study_html, study_text
from monitor.reports.study_report import NoRuns, StudyReport, StudyRequest, study_report
from monitor.serving.depot_server import depot_server
from monitor.supervisor import NotUp

if TYPE_CHECKING:
    from argparse import ArgumentParser

MOST_DAYS = 36_500


class Command(BaseCommand):
    help = "Make a report. study: the tables and figures of the study of two grids, beside its numbers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        usual = StudyRequest()
        parser.add_argument("what", choices=["study"])
        parser.add_argument(
            "--grid",
            choices=sorted(GRIDS),
            help="whose published numbers stand beside (default: the one whose weather the demo has)",
        )
        parser.add_argument("--html", type=Path, metavar="FILE", help="write one HTML file, figures included")
        parser.add_argument("--pdf", type=Path, metavar="FILE", help="write a PDF file")
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

    def handle(self, *, html: Path | None, pdf: Path | None, **options: Any) -> None:
        now = timezone.now()
        since = _days_ago(options["days"])
        request = StudyRequest(
            options["application"],
            options["probe"],
            options["grid"],
            None if since is None else now - since,
            _warm_up(options["warm_up"]),
        )
        formats = _formats(html, pdf)
        try:
            with depot_server(settings.VAR_DIR):  # the demo may have ended
                report = study_report(request, now)
        except (EmbeddedError, NotUp) as error:
            raise CommandError(str(error)) from error
        except NoRuns as error:
            raise CommandError(f"{error}; `manage.py demo --rounds 30 --exit` makes runs") from error
        except TooManySamples as error:
            raise CommandError(f"a metric has {error}: --days chooses fewer runs") from error
        if formats:
            _write(report, formats)
        if options["json"]:
            self.stdout.write(json.dumps(study_document(report), indent=2, allow_nan=False))
        elif not formats:
            self.stdout.write(study_text(report))
        else:
            self.stdout.write("\n".join(f"{file}: written" for file in formats))


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
        for file in formats:
            check_writable(file)
    except (NotWritten, PdfUnavailable) as error:
        raise CommandError(str(error)) from error
    return formats


def _write(report: StudyReport, formats: Mapping[Path, Callable[[str], bytes]]) -> None:
    html = study_html(report)
    try:
        write_all({file: made(html) for file, made in formats.items()})
    except NotWritten as error:
        raise CommandError(str(error)) from error
