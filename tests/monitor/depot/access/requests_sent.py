"""The requests of the table of access: for each operation and page, its URL and its valid body or form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import Client

from tests.monitor.depot.access.decisions import OPERATIONS, PAGES, Decision
from tests.monitor.depot.access.world import OTHER, OWN, Identity, World, add_names

API = "/api/v1"
NOBODY = Identity("nobody", None, Client())


def request_of(world: World, operation: str, place: str, identity: Identity) -> tuple[str, str, str]:
    """Return method, URL and body of *operation* on what is at *place*."""
    method, _, path = operation.partition(" ")
    url = API + filled(world, path, place, identity) + query_of(operation, place)
    return method, url, json.dumps(BODIES[operation](world, place)) if operation in BODIES else ""


def query_of(operation: str, place: str) -> str:
    """Return the query that *operation* needs, about what is at *place*; empty if it needs none."""
    return QUERIES.get(operation, "").replace("PLACE", place)


def page_path(world: World, route: str, place: str, identity: Identity) -> str:
    return "/" + filled(world, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route), place, identity)


def naming() -> list[str]:
    """Return the operations whose requests name something of a place: they differ between places."""
    world = _names()
    decided = (each for each, decision in OPERATIONS.items() if isinstance(decision, Decision))
    requests = {each: [request_of(world, each, place, NOBODY) for place in (OWN, OTHER)] for each in decided}
    return sorted(operation for operation, (own, other) in requests.items() if own != other)


def naming_pages() -> list[str]:
    world = _names()
    paths = {each: [page_path(world, each, place, NOBODY) for place in (OWN, OTHER)] for each in PAGES}
    return sorted(route for route, (own, other) in paths.items() if own != other)


def lists() -> list[str]:
    return [each for each in sorted(OPERATIONS) if each.startswith("GET ") and "{" not in each]


def shown_to_members() -> list[str]:
    """Return the operations that show something of a place, wherever its site is."""
    decisions = {each: OPERATIONS[each] for each in naming() if each.startswith("GET ")}
    return sorted(
        each for each, decision in decisions.items() if isinstance(decision, Decision) and not decision.is_own
    )


def _names() -> World:
    world = World(datetime(2026, 3, 1, tzinfo=UTC))
    for place in (OWN, OTHER):
        add_names(world, place)
    return world


def filled(world: World, path: str, place: str, identity: Identity) -> str:
    """Return *path* with names of objects at *place*."""
    token = world.tokens.get(identity.user, 1)
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
        "access/users": {"pk": world.users.get("viewer", 1)},
        "access/groups": {"pk": world.groups.get("members", 1)},
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
    noun = f"{first}/{rest.partition('/')[0]}" if first in {"access", "grid", "settings"} else first
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
    "GET /forecasts": "?series=PLACE-ring",
    "GET /forecasts/{forecast}/outcome": "?job=j",
    "GET /pairs": f"?series={OWN}-ring&predictor_series=PLACE-ring",
}
BODIES: dict[str, Values] = {
    "POST /availability/recomputations": lambda world, place: {
        "sites": [place], "month": f"{world.now:%Y-%m}", "reason": "test",
    },
    "POST /failures/signatures": lambda world, place: {
        "name": "new", "title": "t", "category": "resource", "severity": "major", "patterns": ["zzz"],
    },
    "POST /failures/signatures/{signature}/withdraw": lambda world, place: {"version": world.signature},
    "POST /forecasts/rank": lambda world, place: {"candidates": [{"series": f"{place}-ring"}]},
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
    "POST /tokens/self/rotate": lambda world, place: {},
    "POST /tokens/{token}/rotate": lambda world, place: {},
    "PUT /webhooks/{webhook}": lambda world, place: {
        "url": "https://hooks.example.org/new", "events": ["site.down"],
    },
}  # fmt: skip
FORMS: dict[str, Values] = {
    "access/groups/<int:pk>/add/": lambda world, place: {"user": "viewer"},
    "access/groups/<int:pk>/rename/": lambda world, place: {"name": "renamed"},
    "access/groups/new/": lambda world, place: {"name": "new"},
    "access/users/<int:pk>/delete/": lambda world, place: {"name": "viewer"},
    "access/users/<int:pk>/grant/": lambda world, place: {"role": "operator"},
    "access/users/<int:pk>/password/": lambda world, place: {"password1": "x1", "password2": "x1"},
    "access/users/<int:pk>/revoke/": lambda world, place: {"grant": "viewer"},
    "access/users/new/": lambda world, place: {"name": "new"},
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
