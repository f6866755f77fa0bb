"""Every page on every screen, light and dark, over full, empty, huge, stale and broken depots.

The pages come from the registry: a new page is looked at without a change here, unless its URL has an
argument that ``arguments`` does not know. Screenshots are in ``var/screenshots``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from monitor.models import AlertRule, Incident, MaintenanceWindow, Resource, Run, Series, Site
from monitor.web import pages
from tests.monitor.web.accounts.logins import as_confirmed
from tests.monitor.web.pages import depots
from tests.monitor.web.pages.chromium import CHROMIUM
from tests.monitor.web.pages.visits import FilledDepot, Visitors, look

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]
QUERIES = {
    "failures/": "?range=90d",
    "failures/breakdown/": "?by=series&range=90d",
    "series/<slug:name>/": "?range=30d",
    "search/": "?q=site&all=1",
    "compare/": "?series=gather-main&with=circle-ring",
}


def arguments() -> dict[str, object]:
    """Return an object of the depot by the part of a route that has an argument; a depot may have none."""
    run, site, rule = Run.objects.first(), Site.objects.first(), AlertRule.objects.first()
    series = run.series if run else Series.objects.first()  # one that has something to show
    return {
        "access/groups/<int:pk>": None,  # looked at in test_access_screens.py
        "access/users/<int:pk>": User.objects.get(username="operator").pk,
        "runs/<uuid:pk>": run and run.pk,
        "storage/<slug:name>": getattr(Resource.objects.exclude(storage={}).first(), "name", None),
        "series/<slug:name>": series and series.name,
        "incidents/<int:pk>": getattr(Incident.objects.first(), "pk", None),
        "reporters/<slug:name>": series and "home",
        "reports/<slug:period>": "2026-05",
        "settings/alerts/delete/<slug:name>": rule and rule.name,
        "settings/alerts/edit/<slug:name>": rule and rule.name,
        "settings/series/edit/<slug:name>": series and series.name,
        "settings/series/retire/<slug:name>": series and series.name,
        "settings/suites/delete/<slug:name>": series and series.suite.name,
        "settings/suites/edit/<slug:name>": series and series.suite.name,
        "sites/<slug:name>": site and site.name,
        "sites/<slug:site>/resources/<slug:name>": site and f"{site.name}/resources/{site.name}-login",
        "failures/causes/<slug:name>": "unknown",
        "holds/<slug:kind>/<slug:name>": site and f"site/{site.name}",
        "maintenance/windows/<slug:name>": getattr(MaintenanceWindow.objects.first(), "name", None),
        "help/api/<slug:operation>": "rank_forecasts",
        "help/guides/<slug:guide>": "pages",
        "failures/signatures/edit/<slug:name>": None,
        "account/passkeys/<int:pk>": None,
        "runs/<uuid:pk>/conflicts/<int:number>": None,
    }


def addresses() -> Iterator[str]:
    """Yield the address of each page that has an object to show."""
    known = arguments()
    for pattern in (each for patterns in pages.load_all().values() for each in patterns):
        route = str(pattern.pattern)
        for part in sorted(known, key=len, reverse=True):
            if part in route and known[part] is not None:
                argument = re.sub(r"<.*", "", part) + str(known[part])
                route = route.replace(part, argument)
        if "<" not in route and (not route or route.endswith("/")):  # others are files
            yield f"/{route}{QUERIES.get(str(pattern.pattern), '')}"


def shown_pages(session: str) -> list[str]:
    """Return the addresses that answer with a page: others are downloads, or accept forms only."""
    browser = Client(headers={"Accept": "text/html"})
    browser.cookies["sessionid"] = session
    found = []
    for address in dict.fromkeys(addresses()):  # an address may have several names
        answer = browser.get(address)
        if answer.status_code == 200 and b"<main" in answer.content:
            found.append(address)
    return found


def name_of(address: str) -> str:
    path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "one", address.partition("?")[0])
    return re.sub(r"[^a-z0-9]+", "-", path).strip("-") or "overview"


def test_some_pages_look_well(visitors: Visitors, depot: FilledDepot) -> None:
    wrong = look(visitors, "/", "full/overview", schemes=["dark"])
    wrong += look(visitors, "/series/gather-main/", "full/series", screens=["phone"])
    wrong += look(visitors, "/style/", "full/style", schemes=["light"])
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
@pytest.mark.parametrize("depot", [*depots.BUILDERS], indirect=True)
def test_every_page_looks_well(
    visitors: Visitors, depot: FilledDepot, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["depot"]
    visitors.session = depot.administrator
    wrong, browser = [], Client()
    browser.cookies["sessionid"] = depot.administrator
    user = User.objects.get(username="administrator")
    as_confirmed(browser, user)
    for address in shown_pages(depot.administrator):
        as_confirmed(browser, user)  # a confirmation lasts five minutes, this test longer
        name = f"{kind}/{name_of(address)}"
        wrong += look(visitors, address, name)
        if kind == "full":
            wrong += look(visitors, address, name, screens=["wall"], schemes=["light"], with_axe=False)
    assert not wrong, "\n".join(wrong)
