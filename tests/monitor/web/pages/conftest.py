"""A small grid, filled depots, and browsers of users with different permissions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.models import Resource, Series
from tests.monitor.web.pages import builders
from tests.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pytest_django.live_server_helper import LiveServer

    from tests.monitor.web.pages.visits import FilledDepot, Visitors


@dataclass(frozen=True)
class Grid:
    """Four sites; Gather uses all, Circle the first three."""

    resources: list[Resource]
    gather: Series
    circle: Series


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


@pytest.fixture
def minute() -> timedelta:
    return timedelta(minutes=1)


@pytest.fixture
def grid(db: None) -> Grid:
    resources = builders.sites(4)
    return Grid(
        resources=resources,
        gather=builders.gather("gather-main", resources),
        circle=builders.circle("circle-ring", resources[:3]),
    )


@pytest.fixture
def reader(db: None) -> User:
    return builders.user("reader")


@pytest.fixture
def client(reader: User) -> Client:
    """A browser of a user without permissions."""
    browser = Client()
    browser.force_login(reader)
    return browser


@pytest.fixture
def runner(db: None) -> Client:
    """A browser of a user who may run series."""
    browser = Client()
    browser.force_login(builders.user("runner", may_run=True))
    return browser


@pytest.fixture(scope="module")
def stored_depots() -> dict[str, FilledDepot]:
    """The depots of a module that were built already, by name."""
    return {}


@pytest.fixture
def depot(
    request: pytest.FixtureRequest,
    stored_depots: dict[str, FilledDepot],
    chromium: Browser,
    live_server: LiveServer,
) -> FilledDepot:
    """The full depot, or the one of ``depots.BUILDERS`` that an indirect parameter names."""
    from tests.monitor.web.pages import depots

    name = getattr(request, "param", "full")
    if name in stored_depots:
        stored_depots[name].restore()
    else:
        stored_depots[name] = depots.BUILDERS[name]()
        stored_depots[name].store()
    return stored_depots[name]


@pytest.fixture
def visitors(chromium: Browser, live_server: LiveServer, depot: FilledDepot) -> Iterator[Visitors]:
    """Browsers of the operator of the depot."""
    from tests.monitor.web.pages.visits import Visitors, is_web_idle

    arrived = Visitors(chromium, live_server.url, depot.session)
    yield arrived
    for context in arrived.open_contexts:
        context.close()
    assert eventually(is_web_idle)  # a request that still reads a table would block emptying it
