"""Every operation of the API, page and admin page, for every role, scope and state of a token.

A new operation or page fails here until ``decisions.py`` says who may use it.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.http import HttpResponseBase
from django.test import RequestFactory, override_settings
from django.urls import URLPattern, URLResolver, get_resolver
from pytest_django.plugin import DjangoDbBlocker

from monitor.models.role import UserRole
from tests.by_night import by_night
from tests.conftest import empty_tables
from tests.monitor.access.decisions import ADMIN, OPERATIONS, PAGES, PUBLIC, Decision, Special
from tests.monitor.access.world import OTHER, OWN, Identity, World, build, signature_version
from tests.monitor.api.openapi_document import openapi_document

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

API = "/api/v1"
DONE = {200, 201, 202, 204, 302, 409}  # answers to a permitted change; 409: the state of the depot forbids it
SHOWN = {200, 204}
PUBLIC_CALLERS = {"anonymous", "session of scheduler"}  # of pages without access control
SHARES = 6
STAFF = (UserRole.SITE_ADMIN, UserRole.OPERATOR, UserRole.ADMINISTRATOR)

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """One state for all tests; each request is rolled back."""
    engine: dict[str, Any] = {**settings.TEMPLATES[0], "APP_DIRS": False}
    engine["OPTIONS"] = {**engine["OPTIONS"], "loaders": ["tests.monitor.access.blank_templates.Loader"]}
    with override_settings(TEMPLATES=[engine]), django_db_blocker.unblock():
        yield build()
        empty_tables()


def operations() -> list[str]:
    paths = openapi_document()["paths"]
    return [
        f"{method.upper()} {path.removeprefix(API)}" for path, methods in paths.items() for method in methods
    ]


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    """Yield all routes but those of operations of the API and of the admin pages."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from () if route.startswith("admin/") else routes(pattern.url_patterns, route)
        elif not route.startswith("api/v1/") or pattern.name in {"openapi-json", "api-root"}:
            yield route


def shares(subjects: Sequence[str]) -> list[ParameterSet]:
    """Return each operation or page with every share of the identities, of which ``make test`` tries one.

    Each identity meets a sixth of the subjects there, and each subject a sixth of the identities.
    """
    by_day = {(subject, number % SHARES) for number, subject in enumerate(subjects)}
    every = itertools.product(subjects, range(SHARES))
    return [pytest.param(*pair, marks=[] if pair in by_day else pytest.mark.nightly) for pair in every]


def test_each_operation_page_and_model_has_a_decision() -> None:
    """A name on one side only is a new operation without a decision, or a decision without its operation."""
    assert set(operations()) ^ set(OPERATIONS) == set()
    assert set(routes(get_resolver().url_patterns)) ^ set(PAGES) == set()
    assert {model._meta.label_lower for model in admin.site._registry} ^ set(ADMIN) == set()


@pytest.mark.parametrize(("operation", "share"), shares(sorted(OPERATIONS)))
def test_operation(world: World, operation: str, share: int) -> None:
    decision, (method, path) = OPERATIONS[operation], operation.split(" ")
    wrong = []
    for identity, place in callers(world.identities, decision, share):
        url = API + filled(world, path, place, identity) + QUERIES.get(operation, "")
        body = json.dumps(BODIES[operation](world, place)) if operation in BODIES else ""
        answer = rolled_back(identity, "generic", method, url, body, content_type="application/json")
        wrong += judged(decision, identity, place, answer, SHOWN if method == "GET" else DONE)
    assert wrong == []


@pytest.mark.parametrize(("operation", "share"), shares(sorted(OPERATIONS)))
def test_nothing_of_a_request_is_validated_without_the_permission(
    world: World, operation: str, share: int
) -> None:
    """The same answer as to a valid request: never what is wrong with its query and its body."""
    decision, (method, path) = OPERATIONS[operation], operation.split(" ")
    wrong = []
    for identity, place in callers(world.identities, decision, share):
        if isinstance(decision, Special) or decision.permits(identity, place):
            continue
        of_places = {each: filled(world, path, each, identity) for each in (OWN, OTHER)}
        if of_places[OWN] == of_places[OTHER] and any(decision.permits(identity, each) for each in of_places):
            continue  # the body names the place
        url = f"{API}{filled(world, path, place, identity)}?unknown=1&unknown=2"
        for kind in ("application/json", "text/csv"):
            answer = rolled_back(identity, "generic", method, url, '{"unknown": [', content_type=kind)
            wrong += judged(decision, identity, place, answer, set())
    assert wrong == []


@pytest.mark.parametrize(("route", "share"), shares(sorted(PAGES)))
def test_page(world: World, route: str, share: int) -> None:
    wrong, sessions = [], [identity for identity in world.identities if not identity.is_program]
    for method, decision in zip(("get", "post"), PAGES[route], strict=True):
        if decision is None:
            continue
        for identity, place in callers(sessions, decision, share):
            path = "/" + filled(world, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route), place, identity)
            form = FORMS[route](world, place) if method == "post" and route in FORMS else {}
            answer = rolled_back(identity, method, path, form)
            wrong += judged(decision, identity, place, answer, SHOWN if method == "get" else DONE)
    assert wrong == []


@pytest.mark.parametrize(
    "role",
    [
        UserRole.VIEWER,
        UserRole.SITE_ADMIN,
        UserRole.OPERATOR,
        *map(by_night, (None, UserRole.SCHEDULER, UserRole.ADMINISTRATOR)),
    ],
)
def test_admin_pages(world: World, role: UserRole | None, rf: RequestFactory) -> None:
    name = "session of an inactive user" if role is None else f"session of {role.value}"
    (identity,) = (each for each in world.identities if each.name == name)
    is_let_in = role in STAFF
    assert identity.client.get("/admin/").status_code == (200 if is_let_in else 302)
    request = rf.get("/admin/")
    request.user = User.objects.get(username=role.value) if role else AnonymousUser()
    for model, model_admin in admin.site._registry.items():
        label = model._meta.label_lower
        rights = dict(zip(STAFF, ADMIN[label], strict=True))
        found = "".join(
            verb[0]
            for verb in ("view", "add", "change", "delete")
            if getattr(model_admin, f"has_{verb}_permission")(request)
        )
        assert found == (rights.get(role, "") if role else ""), label
        listed = identity.client.get(f"/admin/{label.replace('.', '/')}/").status_code
        assert listed == (200 if found else 403 if is_let_in else 302), label


def callers(
    identities: Sequence[Identity], decision: Decision | Special, share: int
) -> Iterator[tuple[Identity, str]]:
    """Yield a *share* of *identities*; those whose rights end at their site, at the other too."""
    if decision == PUBLIC:
        identities = [identity for identity in identities if identity.name in PUBLIC_CALLERS]
    for identity in identities[share::SHARES] or identities[:1]:
        yield identity, OWN
        ends_at_site = identity.role == UserRole.SITE_ADMIN or identity.bound_to
        if isinstance(decision, Decision) and decision.is_own and ends_at_site:
            yield identity, OTHER


def judged(
    decision: Decision | Special,
    identity: Identity,
    place: str,
    answer: HttpResponseBase,
    permitted: set[int],
) -> list[str]:
    """Return the difference between *decision* and *answer*, in words; nothing if they agree."""
    status = answer.status_code
    is_login = status == 302 and answer.headers["Location"].startswith("/login/")
    if isinstance(decision, Special):
        is_right, expected = status in decision.expected, f"{sorted(decision.expected)}"
    elif decision.permits(identity, place):
        is_right, expected = status in permitted | decision.answers and not is_login, "permitted"
    else:
        hidden = {404} if place == OTHER else set()  # of what one may not see
        is_right, expected = status in {401, 403} | hidden or is_login, "denied"
    text = getattr(answer, "content", b"")[:200]
    return [] if is_right else [f"{identity} at {place}: {status}, expected {expected}: {text!r}"]


def rolled_back(identity: Identity, method: str, *arguments: Any, **options: Any) -> HttpResponseBase:
    """Return the answer; undo what the request changed, in the depot and in the cookies of the browser."""
    cookies = identity.client.cookies.output()
    with transaction.atomic():
        answer: HttpResponseBase = getattr(identity.client, method)(*arguments, **options)
        transaction.set_rollback(True)
    if identity.client.cookies.output() != cookies:
        identity.client.cookies = SimpleCookie(cookies.replace("Set-Cookie: ", "").replace("\r\n", ";"))
    return answer


def filled(world: World, path: str, place: str, identity: Identity) -> str:
    """Return *path* with names of objects at *place*."""
    token = world.tokens[identity.role.value] if identity.role else 1
    values: dict[str, Any] = {
        "series": world.series[place].name,
        "site": place,
        "reporter": world.reporters[place].name,
        "alert": world.alerts[place].pk,
        "incident": world.incidents[place].pk,
        "forecast": world.forecasts[place],
        "run": world.runs[place].pk,
        "token": token,
        "window": world.windows[place].name,
        "webhook": "hook",
        "delivery": world.delivery,
        "event": 2**40,
        "resource": f"{place}-0",
        "suite": "main",
        "probe": "circle",
        "method": "blend",
        "rule": f"{place}-rule",
        "operation": "rank_forecasts",
        "guide": "pages",
        "file": "grid.schema.json",
    }
    ping_key, ping_text = world.ping_keys[place]
    by_noun: dict[str, dict[str, Any]] = {
        "series": {
            "name": values["series"],
            "form": "csv",
            "metric": "total.seconds",
            "key": ping_key.pk,
            "signal": "3",
            **({"series": world.reported[place].name} if "/ping" in path else {}),
        },
        "ping": {"key": ping_text, "signal": "start"},
        "reporters": {"name": values["reporter"]},
        "reports": {"period": "2026-03"},
        "alerts": {"pk": values["alert"]},
        "incidents": {"pk": values["incident"]},
        "runs": {"pk": values["run"], "run_id": values["run"], "number": 1},
        "account": {"pk": token if "tokens" in path else 1},
        "tokens": {"pk": token},
        "holds": {"kind": "series", "name": values["series"], "hold": world.holds[place].pk},
        "availability": {"name": place, "recomputation": 2**40},
        "failures": {"name": "jam", "signature": "jam"},
        "forecasts": {"part": "methods"},
        "alert-rules": {"rule": f"{place}-site-rule", "number": 0, "test": "x"},
        "grid/alerts": {"name": f"{place}-site-rule"},
        "grid/resources": {"name": f"{place}-0"},
        "grid/series": {"name": values["series"]},
        "grid/sites": {"name": place},
        "grid/suites": {"name": "main"},
        "public": {"name": place},
        "maintenance": {"name": world.windows[place].name},
        "scoreboard": {"part": "methods"},
        "settings/alerts": {"name": f"{place}-site-rule", "number": 0},
        "settings/ping-keys": {"name": world.reported[place].name, "pk": ping_key.pk},
        "settings/series": {"name": values["series"]},
        "settings/suites": {"name": "main"},
        "storage": {"name": values["resource"]},
        "settings/webhooks": {"name": "hook", "pk": world.delivery},
        "sites": {"name": values["resource"] if "/resources/" in path else place},
        "compare": {"form": "csv"},
        "webhooks": {"name": "hook", "pk": world.delivery},
    }
    first, _, rest = path.strip("/").partition("/")
    noun = f"{first}/{rest.partition('/')[0]}" if first in {"grid", "settings"} else first
    return path.format(**{**values, **by_noun.get(noun, {})})


def _window(world: World, place: str) -> dict[str, Any]:
    start, end = (f"{world.now + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}" for hours in (1, 2))
    sent = {"repeats": "once", "sites": [place], "starts_at": start, "ends_at": end}
    return {**sent, "reason": "test", "verb": "save"}


Values = Callable[[World, str], Any]
_why = {"why": "test"}
QUERIES = {
    "DELETE /maintenance/{window}": "?reason=test",
    "GET /failures/breakdown": "?by=site",
    "GET /forecasts": f"?series={OWN}-ring",
    "GET /forecasts/{forecast}/outcome": "?job=j",
    "GET /pairs": f"?series={OWN}-ring&predictor_series={OTHER}-ring",
}
BODIES: dict[str, Values] = {
    "POST /availability/recomputations": lambda world, place: {
        "sites": [place], "month": f"{world.now:%Y-%m}", "reason": "test",
    },
    "POST /failures/signatures": lambda world, place: {
        "name": "new", "title": "t", "category": "resource", "severity": "major", "patterns": ["zzz"],
    },
    "POST /failures/signatures/{signature}/withdraw": lambda world, place: {"version": signature_version()},
    "POST /forecasts/rank": lambda world, place: {"candidates": [{"series": f"{OWN}-ring"}]},
    "POST /forecasts/{forecast}/outcome": lambda world, place: {
        "job": "j", "outcome": "passed",
        "started_at": world.now.isoformat(), "ended_at": (world.now + timedelta(seconds=9)).isoformat(),
    },
    "POST /forecasts/outcomes": lambda world, place: [{
        "forecast": world.forecasts[place], "job": "j", "outcome": "passed",
        "started_at": world.now.isoformat(), "ended_at": (world.now + timedelta(seconds=9)).isoformat(),
    }],
    "PUT /grid/alerts/{name}": lambda world, place: {
        "entry": {"failures_in_row": 9, "watches": {"sites": [place]}},
    },
    "PUT /grid/resources/{name}": lambda world, place: {
        "entry": {
            "site": place, "scratch": "/s", "shell": {"kind": "local"}, "transfer": {"kind": "local"},
        },
    },
    "PUT /grid/series/{name}": lambda world, place: {
        "entry": {
            "suite": "main", "probe": "circle", "bindings": {"ring": [f"{place}-0", f"{place}-1"]},
        },
    },
    "PUT /grid/sites/{name}": lambda world, place: {"entry": {"title": "new"}},
    "PUT /grid/suites/{name}": lambda world, place: {"entry": {"title": "new"}},
    "POST /holds": lambda world, place: {"kind": "site", "name": place, "mode": "pause", "reason": "test"},
    "POST /holds/{kind}/{name}/resume": lambda world, place: {"reason": "test"},
    "POST /incidents/{incident}/assign": lambda world, place: {},
    "POST /incidents/{incident}/events": lambda world, place: {"text": "test"},
    "POST /incidents/{incident}/resolve": lambda world, place: {"text": "test"},
    "PUT /incidents/{incident}/silence": lambda world, place: {
        "until": (world.now + timedelta(hours=1)).isoformat(),
    },
    "POST /maintenance": lambda world, place: {
        "name": "new", "sites": [place], "reason": "test",
        "starts_at": world.now.isoformat(), "ends_at": (world.now + timedelta(hours=1)).isoformat(),
    },
    "PATCH /maintenance/{window}": lambda world, place: {"reason": "test"},
    "POST /maintenance/{window}/end": lambda world, place: {"reason": "test"},
    "POST /reporters": lambda world, place: {"name": "new", "site": place},
    "POST /reporters/enrol": lambda world, place: {
        "code": "AAAA-BBBB", "method": "openssl", "public_key": "x", "signature": "MA==",
    },
    "POST /runs": lambda world, place: {"kind": "site", "name": place, "reason": "test", "force": True},
    "POST /series/{series}/ping-keys": lambda world, place: {"name": "new"},
    "POST /series/{series}/runs": lambda world, place: {},
    "PATCH /sites/{site}": lambda world, place: {"notes": "new"},
    "POST /tokens": lambda world, place: {"name": "new", "days": 1},
    "POST /tokens/{token}/rotate": lambda world, place: {},
    "PUT /webhooks/{webhook}": lambda world, place: {
        "url": "https://hooks.example.org/new", "events": ["site.down"],
    },
}  # fmt: skip
FORMS: dict[str, Values] = {
    "access/": lambda world, place: {"verb": "grant", "user": "viewer", "role": "operator"},
    "availability/sites/<slug:name>/recompute/": lambda world, place: {
        "month": f"{world.now:%Y-%m}", "reason": "test",
    },
    "holds/<slug:kind>/<slug:name>/act/": lambda world, place: {"verb": "resume", **_why},
    "incidents/<int:pk>/comment/": lambda world, place: {"text": "test"},
    "incidents/<int:pk>/resolve/": lambda world, place: {"text": "test"},
    "login/": lambda world, place: {"login": "unknown", "password": "x"},
    "maintenance/new/": _window,
    "maintenance/windows/<slug:name>/edit/": _window,
    "maintenance/windows/<slug:name>/delete/": lambda world, place: {"reason": "test"},
    "maintenance/windows/<slug:name>/end/": lambda world, place: {"reason": "test"},
    "reporters/": lambda world, place: {"name": "new", "site": place, "capacity": "1"},
    "reporters/<slug:name>/revoke/": lambda world, place: {"confirmed": world.reporters[place].name},
    "account/tokens/": lambda world, place: {"name": "new", "days": "7", "scopes": "read"},
}  # fmt: skip
