"""The overview of one user while another repeats the dearest of the viewer's requests, relative to idle.

The candidates are all pages, downloads and operations that read (``candidates``), over a grid of ``SITES``
sites with ``SERIES`` series each, two of which have 60,000 runs; ``pages`` measures those of a grid that is
twenty times as large. It takes twelve minutes on two slow cores.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from django.contrib.auth.models import User
from django.test import Client, override_settings

from monitor.depot.access.roles import Grant, grant
from monitor.models.role import UserRole
from tests.bench import candidates
from tests.bench.attackers import HttpRequest
from tests.bench.base import Result
from tests.bench.strangers import CSRF, SERIES, SITES, compared, costs_of

OVERVIEW = HttpRequest("/")


def measure() -> list[Result]:
    viewer = candidates.load(SITES, SERIES)
    numbers = itertools.count(1)
    with override_settings(ALLOWED_HOSTS=["*"]):
        browser = Client()
        browser.force_login(viewer)
        costs = costs_of(browser, candidates.of_viewer(viewer))
    name, victim = f"overview of {SITES * SERIES} series", of(_viewer("neighbour"), OVERVIEW)

    def attack_of(request: HttpRequest) -> HttpRequest:  # each attack has a budget of its own
        return of(_viewer(f"attacker-{next(numbers)}"), request)

    return [compared(costs, victim, name, 2.0, attack_of=attack_of)]


def _viewer(name: str) -> User:
    viewer = User.objects.create_user(name)
    grant(viewer, Grant(UserRole.VIEWER))
    return viewer


def of(user: User, request: HttpRequest) -> HttpRequest:
    """Return *request* as a browser sends it in a session of *user*."""
    browser = Client()
    browser.force_login(user)
    session = browser.cookies["sessionid"].value
    cookies = {"Cookie": f"sessionid={session}; csrftoken={CSRF}", "X-CSRFToken": CSRF}
    return replace(request, headers={**request.headers, **cookies})
