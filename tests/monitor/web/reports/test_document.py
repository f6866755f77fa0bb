"""The study as one HTML file and as PDF: complete, valid, and safe whatever texts it shows."""

from __future__ import annotations

import io
import re
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pypdf import PageObject, PdfReader

from monitor.models import FailureSignature, Run
from monitor.models.run import State
from monitor.web.reports.pdf import PdfUnavailable, pdf_renderer
from monitor.web.reports.render import study_html
from monitor.web.reports.study_report import StudyRequest, study_report
from tests.monitor.web.reports.rendering import available_renderer
from tests.monitor.web.reports.studied_runs import (
    HOUR,
    define_grid,
    failed_run_of,
    hourly_runs,
    run_of,
    store,
)

VOID = {"meta", "line", "rect", "circle", "polyline", "br"}
HOSTILE = "<script>alert('x')</script><img src=http://evil.example/> & \x0b \N{RIGHT-TO-LEFT OVERRIDE}"


class Outline(HTMLParser):
    """Checks that tags are balanced, and collects elements, identifiers and references."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice"
        assert not any(name.startswith("on") or name == "style" for name in names)
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.references += [value or "" for name, value in attrs if name in {"href", "src", "xlink:href"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


@pytest.fixture
def grid(db: None, tmp_path: Path) -> None:
    define_grid(tmp_path)


@pytest.fixture
def html(grid: None, noon: datetime) -> str:
    hourly_runs(noon, [2.0 + number % 5 for number in range(24)])
    store(run_of("circle", noon + number * HOUR, transfer_ring=1.0 + number) for number in range(5))
    store([failed_run_of("circle", noon + 9 * HOUR, "No space left on device")])
    return document(noon)


def document(noon: datetime) -> str:
    return study_html(study_report(StudyRequest(grid="teragrid"), noon + timedelta(days=3)))


def text_of(pdf: bytes) -> list[str]:
    return [page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages]


def test_the_file_is_valid_and_needs_nothing_outside_of_it(html: str) -> None:
    outline = Outline(html)
    assert html.startswith("<!doctype html>")
    assert not {"script", "link", "img", "iframe", "object"} & set(outline.tags)
    assert len(outline.ids) == len(set(outline.ids))
    assert {reference.removeprefix("#") for reference in outline.references} <= set(outline.ids)
    assert not re.search(r"https?:|url\(|@import", html)


def test_every_part_of_the_study_has_its_table_or_figure(html: str) -> None:
    outline = Outline(html)
    captions = re.findall(r"<figcaption[^>]*><b>(Table|Figure) \d+\.</b> ([^<]+)", html)
    assert len(captions) == outline.tags.count("figure")
    assert outline.tags.count("svg") == sum(kind == "Figure" for kind, _ in captions)
    titles = [title for _, title in captions]
    for beginning in (
        "Series and runs",
        "Stages of gather as measured, seconds",
        "Quantiles of circle",
        "Share of each stage of gather in the variance",
        "Stages of gather beside those of Gather on TeraGrid, seconds",
        "Totals of gather beside those of Gather on TeraGrid",
        "Runs of preco by the distance of their totals from the mean",
        "Skewness of the totals",
        "Success rates",
        "Errors of circle: failed runs by cause",
        "Correlation of preco with gather",
        "Total (iii) of preco (24 runs) and gather (24 runs) over time, normalised",
        "Stages of preco beside those of PreCo on TeraGrid, seconds",
        "Predictions of preco from gather, beside those of PreCo from Gather on TeraGrid",
    ):
        assert any(title.startswith(beginning) for title in titles), beginning


def right_margin(page: PageObject) -> float:
    return float(page.mediabox.width) - 16 / 25.4 * 72  # 16 mm, in points


def right_edge(page: PageObject) -> float:
    """Return where the number furthest to the right ends at least, in points; charts are left out."""
    edges = [0.0]

    def collect(text: str, current: list[float], matrix: list[float], _font: Any, size: float) -> None:
        if re.fullmatch(r"[-+()%. \d]+", text.strip()) and current[0] != 1.0 and ".." not in text:
            digits = len(re.findall(r"\d", text))  # 0.6 em wide each
            edges.append(current[0] * (matrix[4] + 0.6 * digits * size) + current[4])

    page.extract_text(visitor_text=collect)
    return max(edges)


@pytest.mark.nightly
def test_the_pdf_has_all_text_within_its_margins_page_numbers_and_repeated_titles(html: str) -> None:
    pdf = available_renderer()(html)
    pages = text_of(pdf)
    assert len(pages) > 5
    for number, page in enumerate(pages, start=1):
        assert f"Page {number} of {len(pages)}" in page
    assert all("The study of two grids, repeated, beside TeraGrid" in page for page in pages)
    assert [page for page in PdfReader(io.BytesIO(pdf)).pages if right_edge(page) > right_margin(page)] == []
    whole = " ".join(pages)
    for text in ("Queue wait", "1008.60", "58 %", "TSP+LRP last 10", "10.55", "+0.54"):
        assert text in whole


@pytest.mark.nightly
def test_the_head_of_a_table_is_repeated_on_each_page(grid: None, noon: datetime) -> None:
    store([failed_run_of("circle", noon + number * HOUR, "x") for number in range(60)])
    for number, run in enumerate(Run.objects.filter(state=State.FAILED)):
        signature = FailureSignature.objects.create(
            name=f"cause-{number}", title=f"Cause {number}", category="probe", counts_against_site=True
        )
        Run.objects.filter(pk=run.pk).update(signature=signature)
    pages = text_of(available_renderer()(document(noon)))
    assert sum("Signature" in page for page in pages) >= 2
    assert sum(page.count("Cause 59") for page in pages) == 1


def test_texts_from_outside_are_escaped(grid: None, noon: datetime) -> None:
    store([failed_run_of("circle", noon, HOSTILE)])
    signature = FailureSignature.objects.create(
        name="<b>hostile</b>", title=HOSTILE, category="probe", counts_against_site=True
    )
    Run.objects.update(signature=signature)
    html = document(noon)
    outline = Outline(html)
    assert not {"script", "img"} & set(outline.tags)
    assert "&lt;script&gt;alert" in html
    assert "\x0b" not in html
    assert "<script>alert('x')</script>" in " ".join(text_of(available_renderer()(html))).replace("\n", "")


@pytest.mark.parametrize(
    "error",
    [
        OSError("cannot load library 'libpango-1.0-0': libpango-1.0-0: cannot open shared object file"),
        ModuleNotFoundError("No module named 'weasyprint'"),
    ],
)
def test_without_pango_or_weasyprint_the_error_says_what_to_install(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    def load() -> Any:
        print("WeasyPrint could not import some external libraries.")
        raise error

    with pytest.raises(PdfUnavailable) as refused:
        pdf_renderer(load)
    assert str(refused.value).startswith(f"cannot make PDF: {error}; install Pango")
    assert "apt-get install libpango-1.0-0" in str(refused.value)
    assert "--html" in str(refused.value)
    assert capsys.readouterr().out == ""


def test_a_pdf_has_nothing_from_outside_of_the_document(tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    picture.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="99" height="99"><text y="9">secret</text></svg>'
    )
    inside = f'<img src="{picture.as_uri()}" alt="not shown">'
    assert "secret" not in " ".join(text_of(available_renderer()(inside)))
