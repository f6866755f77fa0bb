"""Each operation and page that changes something is in the audit record, under the user that sent it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client, override_settings
from pytest_django import Settings
from pytest_django.plugin import DjangoDbBlocker

from monitor.models import AuditEvent, Hold, MaintenanceWindow
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts.environment import RemoteUser
from monitor.web.pages.http.audit import NOT_RECORDED, REMOTE_LOGIN
from tests.conftest import empty_tables
from tests.monitor.depot.access.decisions import OPERATIONS, PAGES, Decision
from tests.monitor.depot.access.requests_sent import FORMS, page_path, request_of
from tests.monitor.depot.access.world import OWN, Identity, World, build
from tests.monitor.web.accounts.logins import log_in

pytestmark = pytest.mark.django_db
STRANGER, PROXY = "192.0.2.81", "192.0.2.80"
PROXIES = Proxies((ipaddress.ip_network(PROXY),), is_unix=False)
SESSION, TOKEN = "session of administrator", "token of administrator with all scopes"
# Only tokens may.
OF_PROGRAMS = {"POST /tokens/self/rotate"}
# What the service refuses, because the table of access sends no real content there, or names what is in use.
REFUSED = {
    *(f"DELETE /grid/{section}/{{name}}" for section in ("resources", "sites", "suites")),
    *(f"POST access/groups/<int:pk>/{verb}/" for verb in ("delete", "forbid", "permit", "remove")),
    *(
        f"POST access/users/<int:pk>/{verb}/"
        for verb in ("disconnect", "forbid", "join", "leave", "password")
    ),
    *(f"POST access/users/<int:pk>/{verb}/" for verb in ("permit", "remove-factor", "revoke-token")),
    *(f"POST settings/{noun}/edit/<slug:name>/" for noun in ("alerts", "series", "webhooks")),
    *(f"POST settings/{noun}/delete/<slug:name>/" for noun in ("alerts", "suites", "webhooks")),
    *(f"POST settings/{noun}/new/" for noun in ("suites", "webhooks")),
    *(f"POST failures/signatures/{page}/" for page in ("edit/<slug:name>", "new")),
    "POST settings/series/retire/<slug:name>/",
}
SESSIONS_END = "POST account/sessions/end/"
# Acts that change no row: they send a message, or store a choice in the browser.
MESSAGES = {
    "POST /alert-rules/{rule}/channels/{number}/test",
    "POST /webhooks/{webhook}/deliveries/{delivery}/redeliver",
    "POST /webhooks/{webhook}/ping",
    "POST settings/alerts/test/<slug:name>/<int:number>/",
    "POST settings/webhooks/redeliver/<int:pk>/",
    "POST settings/webhooks/test/<slug:name>/",
}
COOKIES = {"POST account/defaults/", "POST account/time-zone/"}
# These acts list a window with the same value before and after.
REPEATED = {"PATCH /maintenance/{window}", "POST maintenance/windows/<slug:name>/edit/"}
# What the table of access sends asks for nothing new there, or is a form that is shown again.
UNCHANGED = {
    *(f"POST access/users/<int:pk>/{verb}/" for verb in ("enable", "end-sessions", "profile")),
    *(f"POST settings/{page}/" for page in ("alerts/new", "series/new", "suites/edit/<slug:name>")),
    "POST failures/signatures/withdraw/<slug:name>/",
    "POST settings/webhooks/secret/<slug:name>/",
    "POST sites/<slug:name>/edit/",
}
Event = tuple[str, str, str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """One state for all tests; each request is rolled back."""
    engine: dict[str, Any] = {**settings.TEMPLATES[0], "APP_DIRS": False}
    engine["OPTIONS"] = {
        **engine["OPTIONS"],
        "loaders": ["tests.monitor.depot.access.blank_templates.Loader"],
    }
    with override_settings(TEMPLATES=[engine]), django_db_blocker.unblock():
        yield build()
        empty_tables()


@pytest.fixture(autouse=True)
def _proxy(settings: Settings) -> None:
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", PROXIES, "")
    settings.GRIDCAST_PROXIES = PROXIES


def acts() -> list[str]:
    """Return the operations and pages with a decision on a request that changes something."""
    operations = [
        operation
        for operation, decision in OPERATIONS.items()
        if isinstance(decision, Decision) and not operation.startswith("GET ")
    ]
    pages = [f"POST {route}" for route, (_, decision) in PAGES.items() if isinstance(decision, Decision)]
    recorded = [each for each in operations if route_of(each) not in NOT_RECORDED]
    return sorted([*recorded, *pages, "POST logout/"])


def route_of(operation: str) -> str:
    path = operation.partition(" ")[2].strip("/")
    return f"api/v1/{path.replace('{', '<').replace('}', '>')}"


def is_of_api(act: str) -> bool:
    return act in OPERATIONS


@pytest.mark.parametrize("act", acts())
def test_a_name_in_a_header_takes_no_event_out_of_the_record(world: World, act: str) -> None:
    """Any client may send one, and a proxy of ours may name a user without an account."""
    ways = [(SESSION, STRANGER)]
    if is_of_api(act):
        ways = [(TOKEN, STRANGER), (TOKEN, PROXY), *(ways if act not in OF_PROGRAMS else [])]
    for way, address in ways:
        status, plain = answered(world, act, way, address)
        named_status, named = answered(world, act, way, address, remote_user="ghost")
        denials = [(user, action) for outcome, user, action, _ in named if outcome == "denied"]
        assert denials == [("ghost", REMOTE_LOGIN)], (way, address)
        assert named_status == status
        assert kinds(named) == kinds(plain), (way, address)
        assert [user for _, user, _ in kinds(plain)] == ["administrator"] * (act not in REFUSED), (
            way,
            status,
        )


@pytest.mark.parametrize("act", [each for each in acts() if each not in REFUSED])
def test_an_event_lists_what_changed(world: World, act: str) -> None:
    _, events = answered(world, act, TOKEN if act in OF_PROGRAMS else SESSION)
    [(outcome, _, _, changes)] = events
    assert outcome == "done"
    assert bool(changes) == (act not in MESSAGES | COOKIES | UNCHANGED)
    for change in changes:
        assert change["before"] is not None or change["after"] is not None
        assert change["before"] != change["after"] or act in REPEATED, change


def kinds(events: list[Event]) -> list[tuple[str, str, list[str]]]:
    """Return action, user and kinds of changes of what was done."""
    return [
        (action, user, [change["kind"] for change in changes])
        for outcome, user, action, changes in events
        if outcome == "done"
    ]


def answered(
    world: World, act: str, way: str, address: str = STRANGER, **headers: str
) -> tuple[int, list[Event]]:
    """Return the status of the answer to *act*, and its events; nothing of the request stays."""
    identity = next(each for each in world.identities if each.name == way)
    sender = Client(headers=headers, REMOTE_ADDR=address)  # its middleware has counted no denial yet
    sender.cookies.update(identity.client.cookies)
    sender.defaults = {**identity.client.defaults, **sender.defaults}
    with transaction.atomic():
        prepare(world, act)
        known = list(AuditEvent.objects.values_list("pk", flat=True))
        answer = sent(world, act, identity, sender)
        fields = ("outcome", "user", "action", "changes")
        events: list[Event] = list(
            AuditEvent.objects.exclude(pk__in=known).order_by("pk").values_list(*fields)
        )
        transaction.set_rollback(True)
    return answer.status_code, events


def prepare(world: World, act: str) -> None:
    """Let *act* find something to do."""
    if act.endswith(("/end", ">/end/")):
        MaintenanceWindow.objects.filter(name=world.windows[OWN].name).update(starts_at=world.now)
    elif act in {"POST /series/{series}/runs", "POST series/<slug:name>/run-now/"}:
        Hold.objects.update(ended_at=world.now)
    elif act == SESSIONS_END:
        log_in(Client(), "administrator")


def sent(world: World, act: str, identity: Identity, sender: Client) -> Any:
    if is_of_api(act):
        method, url, body = request_of(world, act, OWN, identity)
        return sender.generic(method, url, body, content_type="application/json")
    route = act.partition(" ")[2]
    form = (
        FORMS[route](world, OWN) if route in FORMS else {"session": "others"} if act == SESSIONS_END else {}
    )
    return sender.post(page_path(world, route, OWN, identity), form)
