"""Pages are for logged-in users, and browsers load only what this server serves."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from monitor.depot.samples import formats
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

TEMPLATES = sorted(Path(settings.BASE_DIR, "templates").rglob("*.html"))


@pytest.fixture
def pages(grid: Grid, now: datetime) -> list[str]:
    """The paths of all pages with data."""
    run = builders.passed(grid.circle, now)
    of_series = [reverse(name, args=["circle-ring"]) for name in ("series", "run-now")]
    return [
        "/",
        *of_series,
        *(reverse("samples", args=["circle-ring", form]) for form in formats.names()),
        *(reverse(name, args=[run.pk]) for name in ("run", "raw-report")),
        reverse("holds"),
        *(reverse(name, args=["site", "site1"]) for name in ("hold", "hold-act")),
        reverse("banner"),
    ]


def test_anonymous_users_are_sent_to_the_login_page(pages: list[str]) -> None:
    anonymous = Client()
    for path in pages:
        answer = anonymous.get(path)
        assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={path}")


def test_an_open_page_whose_session_ended_is_reloaded(pages: list[str]) -> None:
    anonymous = Client(headers={"HX-Request": "true"})
    for path in pages:
        assert anonymous.get(path)["HX-Refresh"] == "true"


def test_no_cache_stores_pages(pages: list[str], client: Client) -> None:
    for path in pages:
        answer = client.get(path)
        assert "no-store" in answer["Cache-Control"], path
        assert "HX-Request" in answer["Vary"], path


def test_logging_in_leads_to_the_page_asked_for(grid: Grid) -> None:
    builders.user("reader", password=builders.PASSWORD)
    browser = Client()
    wanted = "/series/circle-ring/"
    form = {"login": "reader", "password": builders.PASSWORD, "next": wanted}
    assert browser.get(f"/login/?next={wanted}").status_code == 200
    assert browser.post("/login/", form)["Location"] == wanted


@pytest.mark.django_db
def test_a_wrong_password_and_an_unknown_user_get_the_same_message() -> None:
    builders.user("reader", password=builders.PASSWORD)
    answers = [
        Client().post("/login/", {"login": name, "password": "wrong"}).content.decode()
        for name in ("reader", "nobody")
    ]
    messages = [re.search(r'role="alert">([^<]+)<', text) for text in answers]
    assert messages[0] is not None
    assert messages[1] is not None
    assert messages[0][1] == messages[1][1]


@pytest.mark.django_db
def test_every_answer_forbids_inline_and_third_party_scripts() -> None:
    for path in ("/login/", "/healthz", "/no-such-page"):
        policy = Client().get(path)["Content-Security-Policy"]
        assert "script-src 'self';" in policy
        assert "default-src 'self'" in policy


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_no_inline_scripts_and_name_no_other_host(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"\son[a-z]+=", text)
    assert not re.search(r"https?://", text)


def test_a_missing_page_looks_like_the_others(client: Client) -> None:
    answer = client.get("/no-such-page")
    assert answer.status_code == 404
    assert "Not found" in answer.content.decode()
