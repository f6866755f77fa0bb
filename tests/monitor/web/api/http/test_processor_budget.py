"""A caller that has used up its processor time is refused, on pages and the API; others are not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from monitor.models import ApiToken, PingKey, Series
from monitor.models.token import READ
from monitor.web.api.http.processor_budget import (
    HOLD_SECONDS,
    MOST_STATEMENT_SECONDS,
    Meter,
    processor_budget,
)
from tests.monitor.outside import reported_series

SECONDS = 0.04  # of processor time: some requests of any kind
MOST_REQUESTS = 500
DEAR, OTHER = "/api/v1/series", "/api/v1/me"


@pytest.fixture(params=["counted together", "counted by process"])
def budget(request: pytest.FixtureRequest, settings: Any) -> Iterator[None]:
    """Small budgets, with the server that counts and without it."""
    settings.GRIDCAST_PROCESSOR_SECONDS = settings.GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS = SECONDS
    if request.param == "counted by process":
        settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    processor_budget.cache_clear()
    window_starts = random.randrange(10**9) * 10.0  # of this test alone, and it does not end meanwhile
    vars(processor_budget())["_clock"] = lambda: window_starts
    yield
    processor_budget.cache_clear()


def user(name: str) -> User:
    return User.objects.create_superuser(name)


def program(owner: User) -> Client:
    token = ApiToken.objects.issue(owner, "program", [READ])
    return Client(headers={"authorization": f"Bearer {token}"})


def browser(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def refusal(client: Client, path: str) -> Any:
    """Return the answer that refuses *client* after some requests of *path*."""
    answers = (client.get(path) for _ in range(MOST_REQUESTS))
    return next(answer for answer in answers if answer.status_code == 429)


def test_a_program_is_refused_where_it_has_used_up_its_time(budget: None, db: None) -> None:
    owner = user("scheduler")
    sender = program(owner)
    first = sender.get(DEAR)
    assert '"processor";q=' in first["RateLimit-Policy"]
    assert ';qu="milliseconds";w=10' in first["RateLimit-Policy"]
    assert '"processor";r=' in first["RateLimit"]
    refused = refusal(sender, DEAR)
    assert (refused["Content-Type"], refused.json()["code"]) == (
        "application/problem+json",
        "too_many_requests",
    )
    assert 1 <= int(refused["Retry-After"]) <= 10
    assert program(user("other")).get(DEAR).status_code == 200


def test_a_route_takes_half_of_the_budget(budget: None, db: None, settings: Any) -> None:
    sender = program(user("scheduler"))
    refusal(sender, DEAR)
    settings.GRIDCAST_PROCESSOR_SECONDS = 1000  # of all routes; the half of one is used up
    assert sender.get(OTHER).status_code == 200


def test_another_token_of_the_user_has_no_budget_of_its_own(budget: None, db: None) -> None:
    owner = user("scheduler")
    refusal(program(owner), DEAR)
    second = program(owner)
    assert [second.get(DEAR).status_code for _ in range(2)][-1] == 429  # known after its first request


def test_a_browser_is_refused_with_a_page_and_a_stranger_is_not(budget: None, db: None) -> None:
    client = browser(user("viewer"))
    refused = refusal(client, "/help/")
    assert b"<h1>Too many requests</h1>" in refused.content
    assert b"Your requests have used up their processor time" in refused.content
    assert 1 <= int(refused["Retry-After"]) <= 10
    assert Client().get("/login/").status_code == 200


def test_a_stranger_is_refused_by_address(budget: None, db: None) -> None:
    stranger = Client()
    assert b"Requests without a login from your network address" in refusal(stranger, "/login/").content
    assert refusal(stranger, "/nothing/").status_code == 429  # no route: all that is left
    assert Client(REMOTE_ADDR="192.0.2.7").get("/login/").status_code == 200


class Connection:
    """The connection of a request in the web server, which notes for how long an answer is held back."""

    def __init__(self) -> None:
        self.held_seconds: list[float] = []

    def hold(self, seconds: float) -> None:
        self.held_seconds.append(seconds)


def test_every_429_to_a_stranger_is_held_back_and_nothing_else(db: None) -> None:
    """Also that of failed logins: a client that ignores Retry-After asks once a second."""
    connection = Connection()
    stranger = Client(REMOTE_ADDR="192.0.2.9", **{"gunicorn.socket": connection})  # type: ignore[arg-type]
    form = {"login": "nobody", "password": "wrong"}
    answers = [stranger.post("/login/", form).status_code for _ in range(60)]
    refused = answers.count(429)
    assert refused
    assert connection.held_seconds == [HOLD_SECONDS] * refused
    assert stranger.get("/login/").status_code == 200
    assert len(connection.held_seconds) == refused


def test_the_cron_jobs_behind_one_address_have_budgets_of_their_own(budget: None, db: None) -> None:
    series, now = reported_series(), timezone.now()
    first, second = (
        f"/api/v1/ping/{PingKey.objects.issue(series, name=name, who='ada', now=now)[1]}/start"
        for name in ("first", "second")
    )
    refused = refusal(Client(), first)
    assert refused.json()["code"] == "too_many_requests"
    assert Client().get(second).status_code == 200
    assert Client().get("/login/").status_code == 200
    assert refusal(Client(), "/api/v1/ping/gcping_wrong").status_code == 429


def test_a_statement_that_waits_is_charged_two_seconds_at_most(db: None) -> None:
    meter = Meter()
    with meter.running(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(2.5)")
    assert meter.database_seconds == MOST_STATEMENT_SECONDS
    with meter.running(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert MOST_STATEMENT_SECONDS < meter.database_seconds < 2 * MOST_STATEMENT_SECONDS


def test_a_streamed_answer_is_charged_for_what_it_sends(budget: None, circle: Series) -> None:
    owner = user("scheduler")
    answer = program(owner).get("/api/v1/series/circle/export")
    caller = f"user:{owner.pk}"
    before = processor_budget().count(caller, 0).left
    assert b"".join(answer)
    assert processor_budget().count(caller, 0).left < before
