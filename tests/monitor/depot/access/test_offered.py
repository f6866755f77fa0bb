"""What pages offer is permitted: a user follows every link and sends every form that its pages show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest
from django.urls import Resolver404, resolve
from pytest_django.plugin import DjangoDbBlocker

from monitor.models.role import UserRole
from tests.conftest import empty_tables
from tests.monitor.depot.access.test_authorisation import rolled_back
from tests.monitor.depot.access.world import World, build

pytestmark = pytest.mark.django_db
A_ROUTE = 3  # pages of the same route that are opened
DENIED = {401, 403, 404, 405, 500}
# Ends of the session, files, and pages with a table of their own in ``test_authorisation``.
NOT_FOLLOWED = ("/logout/", "/login/", "/static/", "/admin/")


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with django_db_blocker.unblock():
        yield build()
        empty_tables()


@dataclass
class Offers(HTMLParser):
    """The links of a page and the addresses of its forms, with the fields that they send."""

    address: str
    links: set[str] = field(default_factory=set)
    forms: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and given.get("href"):
            self.links.add(urljoin(self.address, given["href"]))
        elif tag == "form" and given.get("method", "").lower() == "post":
            self.forms.append((urljoin(self.address, given.get("action", "") or self.address), {}))
        elif tag in {"input", "button"} and self.forms and given.get("name"):
            self.forms[-1][1].setdefault(given["name"], given.get("value", ""))


def route_of(address: str) -> str | None:
    try:
        return resolve(urlsplit(address).path).route
    except Resolver404:
        return None


@pytest.mark.nightly
@pytest.mark.parametrize(
    "role", [UserRole.VIEWER, UserRole.SITE_ADMIN, UserRole.OPERATOR, UserRole.ADMINISTRATOR]
)
def test_each_link_and_form_that_a_user_is_shown_is_permitted(world: World, role: UserRole) -> None:
    (identity,) = (each for each in world.identities if each.name == f"session of {role.value}")
    waiting, opened, sent, wrong = ["/"], dict[str, int](), set[str](), list[str]()
    while waiting:
        address = waiting.pop(0)
        route = route_of(address)
        if route is None or opened.get(route, 0) >= A_ROUTE:
            continue
        opened[route] = opened.get(route, 0) + 1
        answer = identity.client.get(address, headers={"accept": "text/html"})
        if answer.status_code in DENIED:
            wrong.append(f"{address}: {answer.status_code}")
        if answer.status_code != 200 or "text/html" not in answer.headers["Content-Type"]:
            continue
        offers = Offers(address.partition("?")[0])
        offers.feed(answer.content.decode())
        waiting += sorted(
            link for link in offers.links if link.startswith("/") and not link.startswith(NOT_FOLLOWED)
        )
        for action, fields in offers.forms:
            if action in sent or action.startswith(NOT_FOLLOWED):
                continue
            sent.add(action)
            status = rolled_back(identity, "post", action, fields).status_code
            wrong += [f"{address}: form {action}: {status}"] if status in DENIED else []
    assert wrong == []
    assert len(opened) > 40
