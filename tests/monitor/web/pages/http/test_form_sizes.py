"""A form may contain what its fields say, in any script; the forms of strangers stay small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import Resolver404, resolve
from pytest_django.plugin import DjangoDbBlocker

from monitor.models.role import UserRole
from monitor.web.pages.http.read_form import MOST_BYTES
from tests.conftest import empty_tables
from tests.monitor.depot.access.test_authorisation import rolled_back
from tests.monitor.depot.access.world import Identity, World, build

pytestmark = pytest.mark.django_db
WIDE = "語"  # three bytes of UTF-8, nine in a form
NOT_FOLLOWED = ("/logout/", "/login/", "/static/")
PATTERNS = "\n".join(WIDE * 1000 for _ in range(50))
SIGNATURE = {
    "name": "wide",
    "title": WIDE * 200,
    "category": "resource",
    "severity": "major",
    "patterns": PATTERNS,
    "help": WIDE * 2000,
    "precedence": "0",
    "verb": "save",
}
# Text areas of names, one a line; the admin pages have JSON, too.
LISTS = re.compile(r"/admin/.*|.*: (watches\.\w+|notify\.\d+\.to|viewers|suites|sites)")
URLENCODED = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with django_db_blocker.unblock():
        yield build()
        empty_tables()


@pytest.fixture
def administrator(world: World) -> Identity:
    return next(
        each for each in world.identities if each.name == f"session of {UserRole.ADMINISTRATOR.value}"
    )


class Forms(HTMLParser):
    """The links of a page, and its forms: their addresses, and their fields filled as far as they may be.

    *unlimited* are text areas that state no limit.
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.links: set[str] = set()
        self.forms: list[tuple[str, list[tuple[str, str]]]] = []
        self.unlimited: set[str] = set()
        self._is_post = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and given.get("href"):
            self.links.add(urljoin(self.address, given["href"]).partition("#")[0])
        elif tag == "form":
            self._is_post = given.get("method", "").lower() == "post"
            if self._is_post:
                self.forms.append((urljoin(self.address, given.get("action") or self.address), []))
        elif tag in {"input", "button", "textarea"} and self._is_post and given.get("name"):
            length = int(given.get("maxlength") or 0)
            self.forms[-1][1].append((given["name"], WIDE * length if length else given.get("value", "")))
            if tag == "textarea" and not length:
                self.unlimited.add(f"{self.forms[-1][0]}: {given['name']}")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_post = False


def pages_of(identity: Identity) -> Iterator[Forms]:
    """Yield a page of each route that links lead to."""
    waiting, opened = ["/"], set[str]()
    while waiting:
        address = waiting.pop(0)
        try:
            route = resolve(urlsplit(address).path).route + ("?" if "probe=" in address else "")
        except Resolver404:
            continue
        if route in opened:
            continue
        answer = identity.client.get(address, headers={"accept": "text/html"})
        if answer.status_code != 200 or "text/html" not in answer.headers["Content-Type"]:
            continue
        opened.add(route)
        page = Forms(address)
        page.feed(answer.content.decode())
        waiting += sorted(
            link for link in page.links if link.startswith("/") and not link.startswith(NOT_FOLLOWED)
        )
        yield page


@pytest.mark.nightly
def test_every_form_takes_what_its_fields_state(world: World, administrator: Identity) -> None:
    refused, sent, unlimited = [], set[str](), set[str]()
    for page in pages_of(administrator):
        unlimited |= page.unlimited
        for action, fields in page.forms:
            if action in sent or action.startswith(NOT_FOLLOWED):
                continue
            sent.add(action)
            answer = rolled_back(administrator, "post", action, urlencode(fields), content_type=URLENCODED)
            if answer.status_code == 413:
                refused.append(action)
    assert refused == []
    assert [each for each in sorted(unlimited) if not LISTS.fullmatch(each)] == []
    assert len(sent) > 40


def test_a_signature_may_have_all_its_patterns_in_any_script(world: World, administrator: Identity) -> None:
    for form in (SIGNATURE, SIGNATURE | {"patterns": "a\n" + PATTERNS}):  # the last one is refused as such
        answer: Any = rolled_back(administrator, "post", "/failures/signatures/new/", form)
        assert answer.status_code in {302, 409}
    assert b"at most 50" in answer.content


@pytest.mark.parametrize(
    "path", ["/failures/signatures/new/", "/admin/monitor/site/add/", "/login/", "/nothing/"]
)
def test_the_form_of_a_stranger_stays_small(path: str) -> None:
    answer = Client().post(path, urlencode(SIGNATURE), content_type=URLENCODED)
    assert answer.status_code == 413
    assert f"{MOST_BYTES:,} bytes" in answer.content.decode()
