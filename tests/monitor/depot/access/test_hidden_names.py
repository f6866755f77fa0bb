"""No page, list, suggestion, option, count or message names what its reader may not see.

A second grid, whose names all contain ``HIDDEN``, lies beside what the reader sees and is joined to it: by a
rule and a maintenance window that name both, and by a series that uses both sites.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.test import RequestFactory
from django.urls import get_resolver
from pytest_django.plugin import DjangoDbBlocker

from monitor.analysis.availability.refresh import refresh
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import (
    Alert,
    AlertRule,
    Hold,
    IncidentEvent,
    IncidentSeries,
    MaintenanceWindow,
    Notification,
    PingKey,
    Reporter,
    Resource,
    Run,
    Series,
    Site,
    Suite,
)
from monitor.models.run import State
from monitor.web.status import standings
from reporters.report import run_id
from tests.by_night import by_night
from tests.conftest import empty_tables
from tests.monitor import reporter_rows
from tests.monitor.depot.access.decisions import OPERATIONS, PAGES
from tests.monitor.depot.access.requests_sent import API, BODIES, filled, query_of
from tests.monitor.depot.access.test_authorisation import operations, rolled_back, routes
from tests.monitor.depot.access.world import OWN, Identity, World, build
from tests.monitor.web.pages import builders

HIDDEN, TYPO = "zqhush", "zqhus"
SECRET = f"https://chat.example.org/services/{HIDDEN}-token"  # the path is a secret
READERS = ("site_admin", by_night("viewer"), by_night("scheduler"))

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """One state for all tests; each request is rolled back."""
    with django_db_blocker.unblock():
        built = build()
        _hide(built)
        yield built
        empty_tables()


def _hide(world: World) -> None:
    """Make the hidden grid."""
    now, hour = world.now, timedelta(hours=1)
    suite = builders.suite(f"{HIDDEN}-suite")
    suite.viewers.add(Group.objects.create(name=f"{HIDDEN}-viewers"))
    site = Site.objects.create(name=HIDDEN, title=f"{HIDDEN} title", latitude=1.0, longitude=1.0)
    ways = {"shell": {"kind": "local"}, "transfer": {"kind": "local"}, "batch": {"kind": "fork"}}
    resources = [
        Resource.objects.create(
            name=f"{HIDDEN}-{number}", site=site, scratch="/s", storage={"medium": "disk"}, **ways
        )
        for number in range(2)
    ]
    own = Resource.objects.get(name=f"{OWN}-0")
    ring = builders.circle(f"{HIDDEN}-ring", resources, suite=suite)
    joined = builders.circle(f"{HIDDEN}-joined", [own, resources[0]], suite=suite)
    agent = reporter_rows.enrolled(f"{HIDDEN}-agent", now, site=HIDDEN)
    reporter_rows.status(agent, now)
    builders.circle(f"{HIDDEN}-remote", resources, suite=suite, reporter=agent)
    reported = builders.series(
        f"{HIDDEN}-reported", {"host": resources[:1]}, probe="reported", schedule="", suite=suite
    )
    PingKey.objects.issue(reported, name=HIDDEN, who="chief", now=now)
    for series in (ring, joined):
        for minutes in (5, 4):
            builders.passed(series, now - timedelta(minutes=minutes))
    for minutes in (3, 2):
        slot = now - timedelta(minutes=minutes, seconds=30)
        for series, resource in ((ring, resources[0]), (joined, own), (world.series[OWN], own)):
            _failed(series, slot, resource)
    classify_runs(now)
    refresh(now)
    _watch(world, site, [ring, joined], agent)
    window = MaintenanceWindow.objects.create(name="both", starts_at=now - hour, ends_at=now + hour)
    window.sites.add(site, Site.objects.get(name=OWN))
    MaintenanceWindow.objects.create(
        name=f"{HIDDEN}-window", starts_at=now + hour, ends_at=now + 2 * hour
    ).sites.add(site)
    for kind, name in (("site", HIDDEN), ("suite", suite.name), ("reporter", agent.name)):
        Hold.objects.create(kind=kind, name=name, mode="pause", who="chief", why="x", began_at=now - hour)
    standings.recount_due(now)


def _failed(series: Series, slot: Any, resource: Resource) -> None:
    fields = {"due_at": slot, "ended_at": slot, "state": State.FAILED, "stage": "init"}
    named = {"reason": "cannot connect: timed out", "failed_resource": resource.name}
    Run.objects.create(id=run_id(series.name, slot), series=series, slot=slot, **fields, **named)


def _watch(world: World, site: Site, hidden: list[Series], agent: Reporter) -> None:
    """Make rules, one of which names what the reader sees too, and their alerts in one incident."""
    now, seen = world.now, world.series[OWN]
    both = AlertRule.objects.create(
        name="both", condition="failures_in_row", threshold=1, notify=[{"kind": "log"}]
    )
    both.suites.set(Suite.objects.all())
    both.sites.set([site, Site.objects.get(name=OWN)])
    both.series.set([*hidden, seen])
    both.reporters.set([agent, world.reporters[OWN]])
    at_own = AlertRule.objects.get(name=f"{OWN}-site-rule")
    at_own.notify = [{"kind": "webhook", "url": SECRET}]  # of an operator, about the site of the site admin
    at_own.save()
    incident = world.incidents[OWN]
    for series in hidden:
        IncidentSeries.objects.create(incident=incident, series=series, since=now)
    for series in (seen, *hidden):
        IncidentEvent.objects.create(incident=incident, at=now, action="affected", series=series)
        for rule in (both, at_own):
            alert = Alert.objects.create(
                rule=rule,
                series=series,
                since=now,
                opened_at=now,
                incident=incident,
                text=f"{series} fails" if series in hidden else "fails",
            )
            Notification.objects.create(alert=alert, event="opened", channel=rule.notify[0], sent_at=now)
    Alert.objects.create(rule=both, reporter=agent, since=now, opened_at=now, text=HIDDEN)


def _session(world: World, role: str) -> Identity:
    return next(each for each in world.identities if each.name == f"session of {role}")


def _named_in(answer: Any) -> list[str]:
    """Return what surrounds each hidden name in *answer*."""
    chunks = answer.streaming_content if answer.streaming else [answer.content]
    text = b"".join(chunks).decode(errors="replace")
    return [text[max(at.start() - 80, 0) : at.end() + 20] for at in re.finditer(HIDDEN, text)][:2]


@pytest.mark.parametrize("role", READERS)
def test_no_page_names_what_its_reader_may_not_see(world: World, role: str) -> None:
    reader, named = _session(world, role), {}
    for route in sorted(set(routes(get_resolver().url_patterns)) & set(PAGES)):
        if PAGES[route][0] is None:
            continue
        path = "/" + filled(world, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route), OWN, reader)
        cache.clear()
        if found := _named_in(rolled_back(reader, "get", path)):
            named[path] = found
    assert named == {}


def test_no_admin_page_names_what_its_reader_may_not_see(world: World, rf: RequestFactory) -> None:
    reader, named = _session(world, "site_admin"), {}
    request = rf.get("/admin/")
    request.user = User.objects.get(username="site_admin")
    for model, model_admin in admin.site._registry.items():
        if not model_admin.has_view_permission(request):
            continue
        path = f"/admin/{model._meta.label_lower.replace('.', '/')}/"
        shown = model_admin.get_queryset(request).values_list("pk", flat=True)
        for url in (path, *(f"{path}{key}/change/" for key in shown)):
            if found := _named_in(rolled_back(reader, "get", url)):
                named[url] = found
    assert named == {}


@pytest.mark.parametrize("role", READERS)
def test_no_list_of_the_api_names_what_its_reader_may_not_see(world: World, role: str) -> None:
    reader, named = _session(world, role), {}
    for operation in sorted(set(operations()) & set(OPERATIONS)):
        method, path = operation.split(" ")
        if method == "GET":
            url = API + filled(world, path, OWN, reader) + query_of(operation, OWN)
            if found := _named_in(rolled_back(reader, "get", url)):
                named[url] = found
    assert named == {}


@pytest.mark.parametrize("role", READERS)
def test_no_message_suggests_a_name_that_its_reader_may_not_see(world: World, role: str) -> None:
    """A name that is nearly the hidden one, in the path and in the body of each operation."""
    reader, named = _session(world, role), {}
    for operation in sorted(set(operations()) & set(OPERATIONS)):
        method, path = operation.split(" ")
        url = re.sub(rf"\b{OWN}\b", TYPO, filled(world, path, OWN, reader))
        body = json.dumps(BODIES[operation](world, OWN)) if operation in BODIES else ""
        options = {"content_type": "application/json"}
        sent = re.sub(rf"\b{OWN}\b", TYPO, body)
        for data in {body, sent}:
            answer = rolled_back(reader, "generic", method, API + url, data, **options)
            if found := _named_in(answer):
                named[operation] = found
    assert named == {}


def test_a_list_of_incidents_counts_the_series_that_its_reader_may_see(world: World) -> None:
    counts = {}
    for role in ("site_admin", "operator"):
        answer: Any = rolled_back(_session(world, role), "get", "/incidents/")
        rows = {row.incident.pk: row.incident.affected_count for row in answer.context["open"]}
        counts[role] = rows[world.incidents[OWN].pk]
    assert counts == {"site_admin": 1, "operator": 3}
