"""Every operation of the API, page and admin page, for every role, scope and state of a token.

A new operation or page fails here until ``decisions.py`` says who may use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client, RequestFactory, override_settings
from django.urls import URLPattern, URLResolver, get_resolver
from pytest_django.plugin import DjangoDbBlocker

from monitor.models.role import UserRole
from monitor.runs.fleet.enrolment import create_code
from tests.by_night import by_night
from tests.conftest import empty_tables
from tests.monitor.depot.access.decisions import (
    ADMIN,
    AGENTS,
    OPERATIONS,
    PAGES,
    PUBLIC,
    READING,
    Decision,
    Special,
)
from tests.monitor.depot.access.draws import DRAW, drawn, sampled
from tests.monitor.depot.access.requests_sent import (
    API,
    FORMS,
    filled,
    lists,
    naming,
    naming_pages,
    page_path,
    request_of,
    shown_to_members,
)
from tests.monitor.depot.access.world import (
    ABSENT,
    ABSENT_ID,
    HIDDEN,
    OTHER,
    OWN,
    PLACES,
    Identity,
    World,
    build,
)
from tests.monitor.runs.fleet.agents import SiteAgent
from tests.monitor.web.api.openapi_document import openapi_document

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

AGENT = "token of an agent"
METRICS = "metrics"  # the only page that takes tokens
DONE = {200, 201, 202, 204, 302, 409}  # answers to a permitted change; 409: the state of the depot forbids it
SHOWN = {200, 204}
PUBLIC_CALLERS = {"anonymous", "session of scheduler"}  # of pages without access control
SHARES = 16  # of the identities, one of which each operation and page meets by day
NEW_NAMES = {"PUT /grid/alerts/{name}"}  # operations that make what they name, for callers who see a part
STAFF = (UserRole.SITE_ADMIN, UserRole.OPERATOR, UserRole.ADMINISTRATOR)

pytestmark = pytest.mark.django_db


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
    """Return each operation or page with every share of the identities, of which ``make test`` tries one."""
    return drawn(subjects, range(SHARES), every=SHARES)


@dataclass(frozen=True)
class Foreign:
    """Callers with credentials that are no tokens, by kind."""

    clients: Mapping[str, Client]


@pytest.fixture(scope="module")
def foreign(world: World, tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    agent = SiteAgent(world.reporters[OWN], tmp_path_factory.mktemp("keys"))
    world.reporters[OWN].keys.update(revoked_at=world.now)  # there is one that no program has
    key = world.reporters[OWN].keys.create(
        method=agent.key.method,
        public_key=agent.key.public,
        fingerprint=agent.key.fingerprint,
        enrolled_at=world.now,
    )
    texts = {
        AGENT: agent.bearer()["authorization"].removeprefix("Bearer "),
        "ping key": world.ping_keys[OWN][1],
        "enrolment code": create_code(key.reporter, None, world.now),
        "key of a session": str(world.identities[0].client.session.session_key),
    }
    return Foreign(
        {kind: Client(headers={"authorization": f"Bearer {text}"}) for kind, text in texts.items()}
    )


def test_each_operation_page_and_model_has_a_decision() -> None:
    """A name on one side only is a new operation without a decision, or a decision without its operation."""
    assert set(operations()) ^ set(OPERATIONS) == set()
    assert set(routes(get_resolver().url_patterns)) ^ set(PAGES) == set()
    assert {model._meta.label_lower for model in admin.site._registry} ^ set(ADMIN) == set()


@pytest.mark.parametrize(("operation", "share"), shares(sorted(OPERATIONS)))
def test_operation(world: World, operation: str, share: int) -> None:
    decision, method = OPERATIONS[operation], operation.partition(" ")[0]
    wrong = []
    for identity, place in callers(world.identities, decision, share):
        answer = answer_of(world, operation, place, identity)
        wrong += judged(decision, identity, place, answer, SHOWN if method == "GET" else DONE)
    assert wrong == [], DRAW


@pytest.mark.parametrize(("operation", "share"), shares(sorted(OPERATIONS)))
def test_nothing_of_a_request_is_validated_without_the_permission(
    world: World, operation: str, share: int
) -> None:
    """The same answer as to a valid request: never what is wrong with its query and its body."""
    decision, (method, path) = OPERATIONS[operation], operation.split(" ")
    wrong = []
    for identity, place in callers(world.identities, decision, share):
        if isinstance(decision, Special) or decision.without_body().permits(identity, place):
            continue
        of_places = {each: filled(world, path, each, identity) for each in (OWN, OTHER)}
        if of_places[OWN] == of_places[OTHER] and any(decision.permits(identity, each) for each in of_places):
            continue  # the body names the place
        url = f"{API}{filled(world, path, place, identity)}?unknown=1&unknown=2"
        for kind in ("application/json", "text/csv"):
            answer = rolled_back(identity, "generic", method, url, '{"unknown": [', content_type=kind)
            wrong += judged(decision, identity, place, answer, set())
    assert wrong == [], DRAW


@pytest.mark.parametrize(("route", "share"), shares(sorted(PAGES)))
def test_page(world: World, route: str, share: int) -> None:
    wrong, sessions = [], [identity for identity in world.identities if not identity.is_program]
    for method, decision in zip(("get", "post"), PAGES[route], strict=True):
        if decision is None:
            continue
        for identity, place in callers(sessions, decision, share):
            path = page_path(world, route, place, identity)
            form = FORMS[route](world, place) if method == "post" and route in FORMS else {}
            answer = rolled_back(identity, method, path, form)
            wrong += judged(decision, identity, place, answer, SHOWN if method == "get" else DONE)
    assert wrong == [], DRAW


@pytest.mark.parametrize(("route", "share"), shares(sorted(set(PAGES) - {METRICS})))
def test_no_other_page_takes_a_token(world: World, route: str, share: int) -> None:
    """A program is answered like an anonymous caller."""
    wrong = []
    programs = [replace(identity, role=None) for identity in world.identities if identity.is_program]
    for identity in programs[share::SHARES]:
        wrong += judged_page(world, route, identity)
    assert wrong == [], DRAW


@pytest.mark.parametrize("share", sampled(range(SHARES), every=SHARES))
def test_metrics_are_for_tokens_that_read_too(world: World, share: int) -> None:
    """The only page that takes tokens."""
    wrong = []
    programs = [identity for identity in world.identities if identity.is_program]
    for identity, place in callers(programs, READING, share):
        answer: Any = rolled_back(identity, "get", f"/{METRICS}")
        wrong += judged(READING, identity, place, answer, SHOWN)
        if identity in world.readers and f'"{HIDDEN}' in answer.content.decode():
            wrong.append(f"{identity} reads what is hidden")
    assert wrong == [], DRAW


@pytest.mark.parametrize(("operation", "share"), shares(naming()))
def test_what_a_caller_may_not_see_is_answered_as_what_does_not_exist(
    world: World, operation: str, share: int
) -> None:
    """The same status and the same text: an answer does not say that there is something hidden."""
    wrong = []
    for identity, _ in callers(world.readers, OPERATIONS[operation], share):
        answers = [answer_of(world, operation, place, identity) for place in (HIDDEN, ABSENT)]
        texts = [without_names(world, answer) for answer in answers]
        is_told = answers[0].status_code != answers[1].status_code or texts[0] != texts[1]
        if operation in NEW_NAMES:  # a name that is taken is not free
            is_told = answers[0].status_code not in {401, 403, 404}
        if is_told:
            wrong.append(f"{identity}: {answers[0].status_code} {texts}")
    assert wrong == [], DRAW


@pytest.mark.parametrize("operation", sampled(shown_to_members(), every=SHARES))
def test_a_member_of_a_group_sees_the_suite_of_the_group(world: World, operation: str) -> None:
    """With the role that it has: the others are told that it does not exist, and the lists leave it out."""
    wrong, decision = [], OPERATIONS[operation]
    for identity in world.members:
        answer = answer_of(world, operation, HIDDEN, identity)
        wrong += judged(decision, identity, HIDDEN, answer, SHOWN)
    assert wrong == [], DRAW


@pytest.mark.parametrize(("operation", "share"), shares(lists()))
def test_no_list_has_what_a_caller_may_not_see(world: World, operation: str, share: int) -> None:
    wrong = []
    for identity, _ in callers(world.readers, OPERATIONS[operation], share):
        text = answer_of(world, operation, OWN, identity).content.decode()
        wrong += [f"{identity}: {found[0]}" for found in re.finditer(rf".{{60}}{HIDDEN}-.{{20}}", text)]
    assert wrong == [], DRAW


@pytest.mark.parametrize(("route", "share"), shares(naming_pages()))
def test_a_page_of_what_a_user_may_not_see_is_not_found(world: World, route: str, share: int) -> None:
    wrong = []
    sessions = [identity for identity in world.readers if not identity.is_program]
    for method, decision in zip(("get", "post"), PAGES[route], strict=True):
        for identity, _ in callers(sessions, decision, share) if decision else ():
            form = FORMS[route](world, HIDDEN) if method == "post" and route in FORMS else {}
            paths = [page_path(world, route, place, identity) for place in (HIDDEN, ABSENT)]
            hidden, absent = (rolled_back(identity, method, path, form).status_code for path in paths)
            if hidden != absent or hidden in SHOWN:
                wrong.append(f"{identity}: {method} {hidden}, but {absent} of what does not exist")
    assert wrong == [], DRAW


@pytest.mark.parametrize("operation", sampled(sorted(OPERATIONS), every=SHARES))
def test_no_other_credential_is_taken_for_a_token(world: World, operation: str, foreign: Foreign) -> None:
    """Tokens of agents, ping keys and enrolment codes authenticate nothing but what they are made for."""
    decision = OPERATIONS[operation]
    for kind, client in foreign.clients.items():
        identity = Identity(kind, None, client)
        for place in PLACES[:2]:
            status = answer_of(world, operation, place, identity).status_code
            if decision == AGENTS and kind == AGENT:
                assert status in ({403} if place == OTHER else {400, 415, 422}), (kind, place)
            elif isinstance(decision, Special) and decision != AGENTS:
                assert status in decision.expected, (kind, place)
            else:
                assert status == 401, (kind, place)


@pytest.mark.parametrize("route", sampled(sorted(PAGES), every=SHARES))
def test_no_page_takes_another_credential(world: World, route: str, foreign: Foreign) -> None:
    """Not even the metrics, which take tokens."""
    wrong = []
    for kind, client in foreign.clients.items():
        wrong += judged_page(world, route, Identity(kind, None, client))
    assert wrong == [], DRAW


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


def judged_page(world: World, route: str, identity: Identity) -> list[str]:
    """Return the differences between the decisions on a page and its answers to *identity*, in words."""
    wrong = []
    for method, decision in zip(("get", "post"), PAGES[route], strict=True):
        if decision is not None:
            form = FORMS[route](world, OWN) if method == "post" and route in FORMS else {}
            answer = rolled_back(identity, method, page_path(world, route, OWN, identity), form)
            wrong += judged(decision, identity, OWN, answer, set())
    return wrong


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


def answer_of(world: World, operation: str, place: str, identity: Identity) -> Any:
    """Return the answer to *operation* on what is at *place*."""
    method, url, body = request_of(world, operation, place, identity)
    return rolled_back(identity, "generic", method, url, body, content_type="application/json")


def without_names(world: World, answer: HttpResponseBase) -> str:
    """Return the text of *answer* without the id of the request, and what it names without its names."""
    text = str(getattr(answer, "content", b"").decode())
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)  # a name may be a number
    hidden = [world.runs[HIDDEN].pk, world.forecasts[HIDDEN], world.ping_keys[HIDDEN][0].pk]
    hidden += [named[HIDDEN].pk for named in (world.alerts, world.incidents, world.holds)]
    absent = [world.runs[ABSENT].pk, world.forecasts[ABSENT], ABSENT_ID]
    for name in sorted({HIDDEN, ABSENT, *map(str, hidden), *map(str, absent)}, key=len, reverse=True):
        text = re.sub(rf"(?<![0-9a-f]){name}(?![0-9a-f])", "NAME", text)
    return re.sub(r'"request": ?"[^"]*"', "", text)


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
