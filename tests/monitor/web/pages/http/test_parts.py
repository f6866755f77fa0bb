"""A part of a page that raises is shown as failed; the rest of the page is not affected."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest
from django.conf import LazySettings
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from monitor import urls
from monitor.core.counters import counters
from monitor.models import Site
from monitor.web.metrics.definitions import PARTS_FAILED
from monitor.web.pages.http import parts
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

SENTENCE = "This part could not be computed."


class Planted(Exception):
    """Planted by a test."""


def raises(_request: HttpRequest) -> HttpResponse:
    raise Planted


def fails_in_sql(request: HttpRequest) -> HttpResponse:
    """Compute a part with a statement that the database refuses, then read something."""
    parts.compute(request, "refused", lambda: connection.cursor().execute("SELECT nothing_like_it"))
    return HttpResponse(str(Site.objects.count()))


urlpatterns = [
    path("raises/", raises, name="raises"),
    path("fails-in-sql/", fails_in_sql, name="fails-in-sql"),
    *urls.urlpatterns,
]
handler500 = urls.handler500


@contextmanager
def planted(page: str, part: str, error: Exception | None = None) -> Iterator[None]:
    """Let *part* of *page* raise."""

    def fail(at_page: str, at_part: str) -> None:
        if (at_page, at_part) == (page, part):
            raise error or Planted(f"{part} of {page}")

    parts.watchers.append(fail)
    try:
        yield
    finally:
        parts.watchers.remove(fail)


def failures() -> dict[tuple[str, ...], float]:
    return {tuple(key[1:]): count for key, count in counters.read().items() if key[0] == PARTS_FAILED.name}


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.ERROR, logger="monitor.web.pages.http.parts")
    return caplog


def test_a_part_that_raises_is_shown_as_failed_with_the_id_of_the_request(
    grid: Grid, client: Client, logged: pytest.LogCaptureFixture
) -> None:
    before = failures()
    with planted("overview", "incidents"):
        answer = client.get("/", headers={"X-Request-ID": "asked-by-ada"})
    text = answer.content.decode()
    assert answer.status_code == 200
    assert text.count(SENTENCE) == 1
    assert "<code>asked-by-ada</code>" in text
    assert "gather-main" in text
    assert failures().get(("overview", "incidents"), 0) == before.get(("overview", "incidents"), 0) + 1
    (record,) = logged.records
    assert "the part incidents of the page overview" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], Planted)


def test_an_answer_with_a_failed_part_is_not_current(grid: Grid, client: Client) -> None:
    """The first page has no digest, an update has no version: the next update computes the part again."""
    page = f"/sites/{grid.resources[0].site.name}/"
    with planted("site", "notes"):  # fails when it is rendered, after the digest was computed
        first = client.get(page)
        update = client.get(f"{page}?seen={first.context['digest']}", headers={"HX-Request": "true"})
    assert f"seen={first.context['digest']}" not in first.content.decode()
    assert "seen=" in first.content.decode()
    assert update.status_code == 204  # nothing raised: it is not rendered
    with planted("site", "incidents"):
        failed = client.get(f"{page}?seen={first.context['digest']}", headers={"HX-Request": "true"})
    assert failed.status_code == 200
    assert failed.headers["ETag"].startswith('"-')
    again = client.get(page, headers={"HX-Request": "true", "If-None-Match": failed.headers["ETag"]})
    assert again.status_code == 200
    assert SENTENCE not in again.content.decode()


@pytest.fixture
def own_urls(settings: LazySettings) -> None:
    """The URLs of this module, beside those of the service."""
    settings.ROOT_URLCONF = __name__


@pytest.mark.usefixtures("own_urls")
def test_a_page_that_raises_keeps_its_navigation(grid: Grid, client: Client) -> None:
    client.raise_request_exception = False
    before = failures()
    answer = client.get("/raises/", headers={"X-Request-ID": "asked-by-ada"})
    text = answer.content.decode()
    assert answer.status_code == 500
    assert SENTENCE in text
    assert "<code>asked-by-ada</code>" in text
    assert 'aria-label="Main"' in text
    assert failures().get(("raises", "page"), 0) == before.get(("raises", "page"), 0) + 1
    with planted("raises", "frame"):
        bare = client.get("/raises/").content.decode()
    assert "could not be computed" in bare
    assert "aria-label" not in bare


@pytest.mark.usefixtures("own_urls")
def test_a_refused_statement_fails_no_other_part_of_a_change(grid: Grid, client: Client) -> None:
    answer = client.post("/fails-in-sql/")
    assert (answer.status_code, answer.content) == (200, b"4")


@pytest.mark.usefixtures("own_urls")
def test_a_page_for_visitors_fails_without_a_login(grid: Grid) -> None:
    visitor = Client(raise_request_exception=False)
    text = visitor.get("/raises/").content.decode()
    assert SENTENCE in text
    assert "Planted" not in text


@pytest.mark.parametrize("error", [Http404("gone"), PermissionDenied("no")])
def test_answers_that_are_raised_pass(grid: Grid, client: Client, error: Exception) -> None:
    with planted("site", "incidents", error):
        assert client.get("/sites/site1/").status_code == {Http404: 404, PermissionDenied: 403}[type(error)]


def test_an_unreachable_database_is_no_failed_part(grid: Grid, client: Client) -> None:
    with planted("site", "incidents", OperationalError("the connection is lost")):
        assert client.get("/sites/site1/").status_code == 503


@contextmanager
def noted() -> Iterator[list[tuple[str, str]]]:
    """Note the parts that pages compute or render."""
    seen: list[tuple[str, str]] = []

    def note(page: str, part: str) -> None:
        seen.append((page, part))

    parts.watchers.append(note)
    try:
        yield seen
    finally:
        parts.watchers.remove(note)


def test_every_part_of_a_page_may_fail(grid: Grid, runner: Client, now: datetime) -> None:
    """Whatever part raises, the other headings stay; the cross does the same with every page."""
    builders.passed(grid.gather, now)
    with noted() as seen:
        whole = runner.get("/sites/site1/").content.decode()
    headings = set(re.findall(r'<h[12] id="[^"]*"', whole))
    assert {"incidents", "series", "state", "figures", "stages", "navigation", "banner"} <= {
        each for _, each in seen
    }
    for page, part in dict.fromkeys(seen):
        with planted(page, part):
            answer = runner.get("/sites/site1/")
        text = answer.content.decode()
        assert (answer.status_code, SENTENCE in text) == (200, True), part
        if part != "site":  # around all others
            assert headings - set(re.findall(r'<h[12] id="[^"]*"', text)) == set(), part
