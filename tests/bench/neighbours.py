"""The overview of one user while another repeats the dearest of the viewer's requests, relative to idle.

The grid has ``SITES`` sites with ``SERIES`` series each, so that it is loaded in a minute: ``pages`` measures
the pages of one that is twenty times as large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.contrib.auth.models import User
from django.test import Client, override_settings

from monitor.access.roles import Grant, grant
from monitor.models.role import UserRole
from tests.bench import pages, wide_grid
from tests.bench.attackers import HttpRequest
from tests.bench.base import Result
from tests.bench.strangers import compared, costs_of
from tests.monitor.api.operations import operations

SITES, SERIES = 101, 50  # no divisor in common with the signatures: an incident of each at each site


def measure() -> list[Result]:
    viewer = wide_grid.load(SITES, SERIES)["viewer"]
    neighbour = User.objects.create_user("neighbour")
    grant(neighbour, Grant(UserRole.VIEWER))
    with override_settings(ALLOWED_HOSTS=["*"]):
        browser = Client()
        browser.force_login(viewer)
        costs = [(cost, of(viewer, request)) for cost, request in costs_of(browser, requests())]
    name = f"overview of {SITES * SERIES} series"
    return [compared(costs, of(neighbour, HttpRequest("/")), name, 2.0)]


def requests() -> Iterator[HttpRequest]:
    """Yield the requests of a viewer: every page with its filters, and every operation that reads."""
    yield from (HttpRequest(address) for address in pages.addresses())
    for each in operations():
        if each.method == "GET":
            query = "&".join(f"{name}={value}" for name, value in each.query.items())
            yield HttpRequest(f"{each.path}?{query}")


def of(user: User, request: HttpRequest) -> HttpRequest:
    """Return *request* with a session of *user*."""
    browser = Client()
    browser.force_login(user)
    return replace(request, headers={"Cookie": f"sessionid={browser.cookies['sessionid'].value}"})
