"""The processor time that one caller may use within ten seconds: on pages and the API, of all web processes.

A limit of requests alone lets one caller take all processors with dear requests. The callers are users, by a
token or by a session, keys of pings, reporters, and addresses of clients that did not authenticate. Each has
a budget for all requests, and half of it for each route: a script that repeats one dear request does not lock
its user out of the pages. A user is also charged the time of the user's statements in the database, of each
up to two seconds: one that takes longer mostly waits for a lock, which PostgreSQL does not tell. The cron
jobs and the agents of a site behind one address do not share a budget. That of an address is small: strangers
have login pages and a public page to ask for, and hashes of passwords are not charged.

The first request after the budget is used up is refused, not the one that uses it up. So is a request while
others of the caller and the route are under way that are expected to be dear (``under_way``). The web server
sends a refusal a second later, and each other 429 to a caller without a login, so that a client that ignores
``Retry-After`` costs one request a second.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string

from monitor.models import ApiToken, ReporterKey
from monitor.models.token import Sender
from monitor.operations.web_server.client_address import client_address
from monitor.web.api.http.problems import dear_requests_under_way, too_much_processor_time
from monitor.web.api.http.rate_limit import WINDOW_SECONDS, RateLimit, SharedTotals, Standing
from monitor.web.api.http.under_way import ExpectedCosts, UnderWay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

HOLD_SECONDS = 1.0  # how long the web server keeps a refusal back
MOST_STATEMENT_SECONDS = 2.0  # that a statement is charged
_MICROSECONDS = 1_000_000
_MOST_CREDENTIALS = 10_000
_ADDRESS, _PING_KEY, _ROUTE = "address:", "ping key:", "|"
_PINGS = "/api/v1/ping/"


@cache
def processor_budget() -> RateLimit:
    """Return the budgets of this process, in microseconds."""
    return RateLimit(SharedTotals(settings.CELERY_BROKER_URL, "processor"), _limit)


def _limit(caller: str) -> int:
    seconds = (
        settings.GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS
        if caller.startswith(_ADDRESS)
        else settings.GRIDCAST_PROCESSOR_SECONDS
    )
    return int(seconds * _MICROSECONDS) // (2 if _ROUTE in caller else 1)


class Meter:
    """The processor time of this thread, and the time of its statements, while it is ``running``."""

    def __init__(self) -> None:
        self.processor_seconds = self.database_seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        began = time.thread_time()
        with connection.execute_wrapper(self._statement):
            try:
                yield
            finally:
                self.processor_seconds += time.thread_time() - began

    def _statement(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(*arguments)
        finally:
            self.database_seconds += min(time.perf_counter() - began, MOST_STATEMENT_SECONDS)


class ProcessorBudgetMiddleware:
    """Refuse callers that have used up their budget, and charge the others for each request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self._users: OrderedDict[bytes, str] = OrderedDict()  # by credential
        self._lock = threading.Lock()
        self._costs = ExpectedCosts()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        credential = _credential(request)
        known = self._users.get(credential) if credential else None
        caller = known or f"{_ADDRESS}{client_address(request)}"
        request.budget_caller = caller  # type: ignore[attr-defined]  # until it has authenticated
        if known or not credential:
            standing = processor_budget().count(caller, 0)
            if standing.is_exceeded:
                return _refuse(request, standing)
        # A credential that this process does not know yet is a sender of its own, apart from its address.
        meter, under_way = Meter(), UnderWay(self._costs, known or credential.hex() or caller)
        request.under_way = under_way  # type: ignore[attr-defined]
        try:
            with meter.running():
                response = self.get_response(request)
        except BaseException:
            under_way.end()
            raise
        user = _user(request)
        if user and credential:
            self._remember(credential, user)
        caller = user or caller
        under_way.end(caller, _seconds(request, caller, meter))  # streams have places, see ``few_at_once``
        if response.streaming and not hasattr(response, "file_to_stream"):
            response.streaming_content = _charged(request, caller, meter, response.streaming_content)  # type: ignore[attr-defined]
        else:
            _add_headers(response, _charge(request, caller, meter))
        if response.status_code == HTTPStatus.TOO_MANY_REQUESTS and caller.startswith(_ADDRESS):
            _hold_back(request)
        return response

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """Refuse a request of a route whose budget is used up, or of which dear ones are under way."""
        caller: str = request.budget_caller  # type: ignore[attr-defined]
        under_way: UnderWay = request.under_way  # type: ignore[attr-defined]
        standing = processor_budget().count(_of_route(request, caller), 0)
        if standing.is_exceeded:
            return _refuse(request, standing)
        return None if under_way.begin(_route(request)) else _refuse(request, None)

    def _remember(self, credential: bytes, user: str) -> None:
        with self._lock:
            self._users[credential] = user
            if len(self._users) > _MOST_CREDENTIALS:
                self._users.popitem(last=False)


def _credential(request: HttpRequest) -> bytes:
    """Return a digest of the ping key, token or session that *request* shows; empty if it shows none."""
    _, is_ping, rest = request.path_info.partition(_PINGS)
    shown = rest.partition("/")[0] if is_ping else request.META.get("HTTP_AUTHORIZATION")
    shown = shown or request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    return hashlib.blake2b(shown.encode(errors="replace"), digest_size=16).digest() if shown else b""


def _user(request: HttpRequest) -> str:
    """Return the authenticated caller, or an empty text. A user whom no view asked for is not looked up."""
    auth = getattr(request, "auth", None)
    if isinstance(auth, Sender):
        return f"user:{auth.user}"
    if isinstance(auth, ReporterKey):
        return f"reporter:{auth.reporter_id}"
    if ping_key := getattr(request, "ping_key", None):
        return f"{_PING_KEY}{ping_key}"
    user = auth.user if isinstance(auth, ApiToken) else auth or getattr(request, "looked_up_user", None)
    return f"user:{user.pk}" if isinstance(user, User) and user.is_authenticated else ""


def _route(request: HttpRequest) -> str:
    return request.resolver_match.route if request.resolver_match else "none"


def _of_route(request: HttpRequest, caller: str) -> str:
    return f"{caller}{_ROUTE}{_route(request)}"


def _seconds(request: HttpRequest, caller: str, meter: Meter) -> float:
    """Return what the request did cost: of users that are people, the time of statements as well."""
    is_person = caller.startswith("user:") and not isinstance(getattr(request, "auth", None), Sender)
    return meter.processor_seconds + (meter.database_seconds if is_person else 0.0)


def _charge(request: HttpRequest, caller: str, meter: Meter) -> Standing:
    """Charge *caller* for what *meter* has measured; return the smaller of both standings."""
    amount = int(_seconds(request, caller, meter) * _MICROSECONDS)
    budget = processor_budget()
    standings = budget.count(_of_route(request, caller), amount), budget.count(caller, amount)
    return min(standings, key=lambda standing: standing.left)


def _charged(request: HttpRequest, caller: str, meter: Meter, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield *chunks*, and charge *caller* for them at the end, whatever ends them."""
    remaining = iter(chunks)
    try:
        while True:
            with meter.running():
                chunk = next(remaining, None)
            if chunk is None:
                return
            yield chunk
    finally:
        _charge(request, caller, meter)


def _add_headers(response: HttpResponseBase, standing: Standing) -> None:
    """Add the budget to the fields of the rate limit, which answers of the API have."""
    if "RateLimit" in response:
        left = max(standing.left, 0) // 1000
        response["RateLimit-Policy"] += (
            f', "processor";q={standing.limit // 1000};qu="milliseconds";w={WINDOW_SECONDS}'
        )
        response["RateLimit"] += f', "processor";r={left};t={standing.reset_seconds}'


def _refuse(request: HttpRequest, standing: Standing | None) -> HttpResponse:
    """Return the answer to a caller whose budget is used up, or whose dear requests are under way."""
    seconds = standing.reset_seconds if standing else 1
    if request.path_info.startswith("/api/"):
        response = too_much_processor_time(seconds) if standing else dear_requests_under_way(seconds)
    else:
        is_stranger = request.budget_caller.startswith(_ADDRESS)  # type: ignore[attr-defined]
        context = {"seconds": seconds, "is_stranger": is_stranger, "are_under_way": standing is None}
        page = render_to_string("too_much.html", context)
        response = HttpResponse(page, status=HTTPStatus.TOO_MANY_REQUESTS)
        response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    _hold_back(request)
    return response


def _hold_back(request: HttpRequest) -> None:
    hold = getattr(request.META.get("gunicorn.socket"), "hold", None)
    if hold is not None:
        hold(HOLD_SECONDS)
