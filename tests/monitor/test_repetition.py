"""What an answer, a page or a line of the log repeats of foreign input is bounded in number and length.

Every operation of the API and every page is sent texts that are very long and very many, wherever it reads
any: in keys and values of bodies, parameters, fields of forms, paths and headers. An operation or a page that
is added joins by itself. By day some of them are drawn, of another seed each day; by night all are asked.
``GRIDCAST_REPETITION_SEED`` repeats a draw.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

import pytest
from allauth.account.internal.flows.login import (
    _AUTHENTICATION_METHODS_USER_SESSION_KEY as RECORDS_USER_KEY,
)
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY as RECORDS_KEY
from django.contrib.auth.models import User
from django.core.handlers.base import BaseHandler
from django.db import transaction
from django.http import QueryDict
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from monitor.core.log import LineFormatter
from monitor.models import AuditEvent
from monitor.web import pages
from monitor.web.accounts.session_store import SessionStore
from monitor.web.pages.audit import EVENTS_A_PAGE
from tests.by_night import by_night
from tests.conftest import empty_tables
from tests.monitor.web.api.example_grid import SERIES, example_grid
from tests.monitor.web.api.operations import ApiOperation, operations

FORM = "application/x-www-form-urlencoded"
MARK = "Zq7"
LONG = MARK * 60_000  # a text of a body: 180 kB
IN_LINE = MARK * 1_200  # of a request line or a header: web servers accept 8 KiB of each
MANY = 900  # keys, beyond which a body is refused unread
MOST_MARKS = 4_000  # repeated in an answer of the API, or in a refusal: 12 kB
IN_QUERY = MARK * 640  # of a query, of which pages take 2,000 bytes
IN_LINKS = 40 * 640  # on a page, whose links and forms have its parameters
FORM_MARKS = 16_000  # sent in a form, of which a page has at most 64 KiB
MOST_IN_FORM = 2 * FORM_MARKS  # repeated by a page that shows the form again: as it was, and in a message
MOST_MORE_BYTES = 48 * 1024  # of an answer, beyond what the marks take
MOST_LINE = 2_500  # characters of a line of the log
ALL = list(operations())
BY_DAY = 8  # operations and pages of a test
SEED = int(os.environ.get("GRIDCAST_REPETITION_SEED") or datetime.now(UTC).toordinal())
by_day_and_night = pytest.mark.parametrize("all_of", [pytest.param(False, id=f"seed {SEED}"), by_night(True)])


Choice = TypeVar("Choice")


class Lines(logging.Handler):
    """Keeps the lines of the log as they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter("%(levelname)s %(name)s: %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += self.format(record).splitlines()


class AskedNames(QueryDict):
    """The parameters of a request, which notes the names that are asked for."""

    def __init__(self) -> None:
        super().__init__("", mutable=True)
        self.names: set[str] = set()

    def __getitem__(self, key: Any) -> Any:
        self.names.add(key)
        return super().__getitem__(key)

    def getlist(self, key: Any, default: Any = None) -> Any:
        self.names.add(key)
        return super().getlist(key, default)

    def __contains__(self, key: Any) -> bool:
        self.names.add(key)
        return super().__contains__(key)


class Caller:
    """Calls the service with all its middleware, in a transaction that is rolled back."""

    def __init__(self, token: str, session: str) -> None:
        self.api = RequestFactory(headers={"authorization": f"Bearer {token}"})
        self.browser = RequestFactory()
        self.browser.cookies["sessionid"] = session
        self._handler = BaseHandler()
        self._handler.load_middleware()
        self.lines = Lines()

    def send(self, request: Any) -> Any:
        request._dont_enforce_csrf_checks = True
        with transaction.atomic():
            answer: Any = self._handler.get_response(request)
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
            transaction.set_rollback(True)
        return answer, content

    def complaints(self, what: str, request: Any, most_marks: int = MOST_MARKS) -> Iterator[str]:
        """Yield what the answer and the log repeat too often of a *request* full of marks."""
        self.lines.lines.clear()
        answer, content = self.send(request)
        headers = "".join(f"{name}: {value}\n" for name, value in answer.headers.items())
        marks = content.count(MARK.encode()) + headers.count(MARK)
        if marks > most_marks:
            yield f"{what}: {answer.status_code}: {marks} marks in {len(content)} bytes"
        if answer.status_code >= 400 and len(content) > MOST_MORE_BYTES + marks * len(MARK):
            yield f"{what}: {answer.status_code}: {len(content)} bytes of a refusal"
        if answer.status_code >= 500:
            yield f"{what}: {answer.status_code}: {content[:300]!r}"
        longest = max(map(len, self.lines.lines), default=0)
        if longest > MOST_LINE:
            yield f"{what}: a line of {longest} characters in the log"


@pytest.fixture(scope="module")
def grid(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[tuple[str, str]]:
    """A token and a session of a superuser."""
    with django_db_blocker.unblock():
        token = example_grid()
        audited()
        browser = Client()
        browser.force_login(User.objects.get(username="root"))
        yield token, browser.cookies["sessionid"].value
        empty_tables()


def audited() -> None:
    """Fill a page of the audit record, whose rows have links."""
    now = timezone.now()
    changes = [{"kind": "site", "name": f"s{number}", "before": None, "after": None} for number in range(5)]
    AuditEvent.objects.bulk_create(
        AuditEvent(
            at=now, last_at=now, outcome="done", channel="page", user="root", action="edit", changes=changes
        )
        for _ in range(EVENTS_A_PAGE)
    )


@pytest.fixture
def caller(grid: tuple[str, str], db: None) -> Iterator[Caller]:
    calls = Caller(*grid)
    confirm(grid[1])
    root = logging.getLogger()
    others, root.handlers = root.handlers, [calls.lines]
    yield calls
    root.handlers = others


def confirm(key: str) -> None:
    """Let the session be as after a confirmation: forms that change accounts are read only then."""
    session = SessionStore(key)
    session[RECORDS_KEY] = [{"method": "password", "at": time.time(), "reauthenticated": True}]
    session[RECORDS_USER_KEY] = session["_auth_user_id"]
    session.save()


def drawn(choices: Iterable[Choice], *, all_of: bool) -> list[Choice]:
    """Return some of *choices*, or all of them."""
    everything = list(choices)
    return everything if all_of else random.Random(SEED).sample(everything, BY_DAY)


def bodies(operation: ApiOperation) -> Iterator[tuple[str, Any]]:
    """Yield bodies that are like the example, with marks."""
    example = operation.example if isinstance(operation.example, dict) else {}
    keys = {f"{MARK}{number}": MARK * 20 for number in range(MANY)}
    yield "many keys", {**example, **keys}
    yield "a long key", {**example, LONG: 1}
    yield "long values", _marked(example)
    yield "long keys within", {key: {LONG: LONG} for key in example} or [LONG]
    yield "many values", {key: [MARK * 20] * MANY for key in example} or [MARK] * 20


def _marked(value: Any) -> Any:
    """Return *value* with a long text in the place of each text, however deep."""
    if isinstance(value, Mapping):
        return {key: _marked(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_marked(inner) for inner in value]
    return LONG if isinstance(value, str) else value


@by_day_and_night
def test_no_operation_repeats_much_of_a_body(caller: Caller, all_of: bool) -> None:
    with_body = [each for each in ALL if "requestBody" in each.definition]
    complaints = [
        complaint
        for each in drawn(with_body, all_of=all_of)
        for what, body in bodies(each)
        for complaint in caller.complaints(
            f"{each} {what}",
            caller.api.generic(each.method, each.path, json.dumps(body).encode(), "application/json"),
        )
    ]
    assert not complaints, "\n".join(complaints)


@by_day_and_night
def test_no_operation_repeats_much_of_a_request_line(caller: Caller, all_of: bool) -> None:
    complaints = [
        complaint
        for each in drawn(ALL, all_of=all_of)
        for what, path in lines_of(each)
        for complaint in caller.complaints(f"{each} {what}", caller.api.generic(each.method, path))
    ]
    assert not complaints, "\n".join(complaints)


def lines_of(operation: ApiOperation) -> Iterator[tuple[str, str]]:
    """Yield the paths of requests with marks in the parameters, and in each part that is a parameter."""
    yield "an unknown parameter", f"{operation.path}?{IN_LINE}={IN_LINE}"
    names = [parameter["name"] for parameter in operation.parameters]
    for name in names:
        yield f"the parameter {name}", f"{operation.path}?{name}={IN_LINE}"
    parts, routes = operation.path.split("/"), operation.route.split("/")
    for number, part in enumerate(routes):
        if part.startswith("{"):
            yield f"{part} of the path", "/".join([*parts[:number], IN_LINE, *parts[number + 1 :]])


@by_day_and_night
def test_no_header_is_repeated_much(caller: Caller, all_of: bool) -> None:
    names = (
        *(
            "accept",
            "accept-encoding",
            "content-encoding",
            "content-type",
            "cookie",
            "if-none-match",
            "prefer",
        ),
        *("host", "origin", "range", "referer", "user-agent", "x-forwarded-for", "x-request-id"),
        *("authorization", "hx-current-url", "hx-request", "hx-target", "idempotency-key"),
    )
    complaints = [
        complaint
        for name in drawn(names, all_of=all_of)
        for path in ("/api/v1/me", "/api/v1/reports", "/nothing/", "/", "/login/", "/metrics")
        for complaint in caller.complaints(
            f"{name} of {path}", caller.api.generic("POST", path, b"{}", headers={name: IN_LINE})
        )
    ]
    assert not complaints, "\n".join(complaints)


def test_no_method_or_unknown_path_is_repeated_much(caller: Caller) -> None:
    complaints = [
        complaint
        for requests in (caller.api, caller.browser)
        for path in (
            f"/api/v1/{IN_LINE}",
            f"/{IN_LINE}/",
            f"/static/{IN_LINE}",
            f"/login/?next=/{IN_LINE}",
            "/",
        )
        for method in ("GET", MARK * 100)
        for complaint in caller.complaints(f"{method[:9]} {path[:20]}", requests.generic(method, path))
    ]
    assert not complaints, "\n".join(complaints)


def page_paths() -> Iterator[str]:
    """Yield the path of each page, with an object in the place of each argument."""
    known = {
        "slug:site": "ncsa",
        "slug:kind": "site",
        "slug:operation": "rank_forecasts",
        "slug:guide": "pages",
    }
    for pattern in (each for patterns in pages.load_all().values() for each in patterns):
        route = f"/{pattern.pattern}"
        for argument, value in (pattern.pattern.converters or {}).items():
            kind = type(value).__name__.removesuffix("Converter").lower()
            text = {"int": "1", "uuid": "0" * 32}.get(kind) or known.get(f"slug:{argument}") or named(route)
            route = route.replace(f"<{kind}:{argument}>", text)
        yield route


def named(route: str) -> str:
    nouns = {
        "series": SERIES,
        "ping-keys": SERIES,
        "suites": "main",
        "alerts": "main-failures",
        "reports": "2026-03",
    }
    nouns |= {"sites": "ncsa", "resources": "ncsa-login", "reporters": "sdsc-agent", "holds": "ncsa"}
    return next((name for noun, name in nouns.items() if f"/{noun}/" in route), "ncsa")


@contextmanager
def asked_names(caller: Caller, method: str, path: str) -> Iterator[set[str]]:
    """Yield the names of the parameters, or fields of a form, that a page asks for."""
    request, names = caller.browser.generic(method, path), AskedNames()
    if method == "GET":
        request.GET = names  # type: ignore[assignment]
    else:
        request.POST = names  # type: ignore[assignment]
    caller.send(request)
    yield names.names


@by_day_and_night
def test_no_page_repeats_much_of_a_parameter(caller: Caller, all_of: bool) -> None:
    complaints: list[str] = []
    asked = filled = 0
    paths = list(page_paths())
    for path in paths if all_of else random.Random(SEED).sample(paths, len(paths)):
        if filled == BY_DAY and not all_of:
            break
        with asked_names(caller, "GET", path) as names:
            asked += len(names)
            for name, value in itertools.product(sorted({*names, "unknown"}), (IN_QUERY, IN_LINE)):
                request = caller.browser.get(f"{path}?{name}={value}")
                complaints += caller.complaints(f"GET {path} {name} {len(value)}", request, IN_LINKS)
    assert not complaints, "\n".join(complaints)
    assert asked > (100 if all_of else 0)


@by_day_and_night
def test_no_page_repeats_much_of_a_form(caller: Caller, all_of: bool) -> None:
    complaints: list[str] = []
    asked = filled = 0
    paths = list(page_paths())
    for path in paths if all_of else random.Random(SEED).sample(paths, len(paths)):
        if filled == BY_DAY and not all_of:
            break
        with asked_names(caller, "POST", path) as names:
            asked += len(names)
            fields = {name: MARK * (FORM_MARKS // len(names)) for name in sorted(names)}
            if fields:
                filled += 1
                request = caller.browser.post(path, urlencode(fields), FORM)
                complaints += caller.complaints(f"POST {path}", request, MOST_IN_FORM)
    assert not complaints, "\n".join(complaints)
    assert asked > (100 if all_of else 0)
