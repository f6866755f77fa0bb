"""A part of a page that raises is shown as failed; the rest of the page, and other pages, are not affected."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404
from django.test import Client

from monitor.counters import counters
from monitor.metrics.definitions import PARTS_FAILED
from monitor.pages.http import parts
from tests.monitor.pages import builders
from tests.monitor.pages.conftest import Grid

SENTENCE = "This part could not be computed."


class Planted(Exception):
    """Planted by a test."""


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
    caplog.set_level(logging.ERROR, logger="monitor.pages.http.parts")
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
    assert "Planted" in str(record.exc_info[1].__class__)


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


@pytest.mark.parametrize("error", [Http404("gone"), PermissionDenied("no")])
def test_answers_that_are_raised_pass(grid: Grid, client: Client, error: Exception) -> None:
    with planted("site", "incidents", error):
        assert client.get("/sites/site1/").status_code == {Http404: 404, PermissionDenied: 403}[type(error)]


def test_an_unreachable_database_is_no_failed_part(grid: Grid, client: Client) -> None:
    with planted("site", "incidents", OperationalError("the connection is lost")):
        assert client.get("/sites/site1/").status_code == 503


def test_every_part_of_these_pages_may_fail(grid: Grid, client: Client, now: datetime) -> None:
    """Whatever part raises: the status is 200, the sentence is there, and every other heading too."""
    client.logout()
    client.force_login(builders.user("chief", is_superuser=True))
    builders.passed(grid.gather, now)
    for path in ("/", "/sites/site1/", "/series/gather-main/", "/storage/", "/failures/", "/incidents/", "/alerts/"):
        seen: list[tuple[str, str]] = []
        note = lambda page, part, seen=seen: seen.append((page, part))  # noqa: E731
        parts.watchers.append(note)
        whole = client.get(path).content.decode()
        parts.watchers.remove(note)
        headings = re.findall(r'<h[12] id="[^"]*"', whole)
        assert SENTENCE not in whole
        assert seen
        for page, part in dict.fromkeys(seen):
            with planted(page, part):
                answer = client.get(path)
            text = answer.content.decode()
            assert (answer.status_code, SENTENCE in text) == (200, True), (path, part)
            if "<main" in text and part != page and part != "live":
                lost = set(headings) - set(re.findall(r'<h[12] id="[^"]*"', text))
                assert len(lost) <= 1, (path, part, lost)
