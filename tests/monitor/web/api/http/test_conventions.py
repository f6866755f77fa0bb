"""HTTP on every path: HEAD, OPTIONS, entity tags, compression, request ids and the headers of caches."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from backports import zstd
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLResolver, get_resolver

from monitor.models import ApiToken, Run, Series
from monitor.models.run import State
from monitor.models.token import READ
from monitor.web.api.http.conditional import tag_of_body
from reporters.report import run_id
from tests.monitor.web.api.openapi_document import openapi_document

URL = "/api/v1/runs"
DOCUMENT = openapi_document()
PATHS = sorted(DOCUMENT["paths"])
NUMBERS_AND_ENDS = ((1, 1), (1, 2), (2, 2))
UNPACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "zstd": zstd.decompress}


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_superuser("scheduler")


@pytest.fixture
def client(user: User) -> Client:
    token = ApiToken.objects.issue(user, "scheduler", [READ])
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def runs(circle: Series, noon: datetime) -> None:
    slots = [noon + timedelta(minutes=minute) for minute in range(30)]
    Run.objects.bulk_create(
        Run(id=run_id("circle", slot), series=circle, slot=slot, due_at=slot, state=State.PASSED)
        for slot in slots
    )


def test_an_answer_that_the_client_has_is_not_sent_again(runs: None, client: Client) -> None:
    first = client.get(URL)
    assert first["ETag"].startswith('W/"')
    again = client.get(URL, headers={"if-none-match": f'"other", {first["ETag"]}'})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert "Content-Type" not in again
    Run.objects.filter(slot=Run.objects.latest("slot").slot).delete()
    changed = client.get(URL, headers={"if-none-match": first["ETag"]})
    assert (changed.status_code, changed["ETag"] != first["ETag"]) == (200, True)


def test_only_the_age_of_the_data_makes_no_new_answer() -> None:
    aged = [b'{"n": 1, "data_age_seconds":%d, "age_seconds":%d}' % (age, age) for age in (1, 2)]
    assert tag_of_body(aged[0]) == tag_of_body(aged[1])
    assert tag_of_body(b'{"n":1,"expected_seconds":1}') != tag_of_body(b'{"n":1,"expected_seconds":2}')


def test_a_window_that_ends_now_makes_no_new_answer_but_a_new_value_does() -> None:
    windows = [
        b'{"n":%d,"start":"a","end":"%d","data_age_seconds":1}' % (n, end) for n, end in NUMBERS_AND_ENDS
    ]
    moving = [tag_of_body(body, ends_now=True) for body in windows]
    assert (moving[0] == moving[1], moving[0] == moving[2]) == (True, False)
    assert tag_of_body(windows[0]) != tag_of_body(windows[1])  # of a window that the request names


def test_head_answers_as_get_without_the_body(runs: None, client: Client) -> None:
    got, head = client.get(URL), client.head(URL)
    assert (head.status_code, head.content, head["Content-Type"]) == (200, b"", got["Content-Type"])
    assert (head["ETag"], head["Content-Length"]) == (got["ETag"], str(len(got.content)))
    assert client.head("/api/v1/runs/7").status_code == 422


@pytest.mark.parametrize("path", PATHS)
def test_options_lists_the_methods_of_every_path(db: None, path: str) -> None:
    """Without a token, and whatever the parameters of the path."""
    filled = path.replace("{run}", "0" * 32).replace("{part}", "last").replace("{kind}", "site")
    answer = Client().options(filled.replace("{", "").replace("}", ""))
    assert (answer.status_code, answer.content) == (204, b"")
    declared = {method.upper() for method in DOCUMENT["paths"][path]}
    expected = declared | {"OPTIONS"} | ({"HEAD"} if "GET" in declared else set())
    assert {*answer["Allow"].split(", ")} == expected


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=0.5, zstd;q=0.1", "gzip"),
        ("*", "zstd"),
        ("identity", None),
        ("gzip;q=0", None),
        ("gzip;q=high", None),
        ("", None),
    ],
)
def test_an_answer_is_compressed_as_the_client_accepts(
    runs: None, client: Client, accepted: str, encoding: str | None
) -> None:
    plain = client.get(URL)
    answer = client.get(URL, headers={"accept-encoding": accepted})
    assert answer.get("Content-Encoding") == encoding
    content = UNPACK[encoding](answer.content) if encoding else answer.content
    assert json.loads(content) == plain.json()
    assert answer["Vary"] == "Authorization, Cookie, Accept-Encoding"


def test_neither_a_small_answer_nor_that_of_a_session_is_compressed(
    runs: None, client: Client, user: User
) -> None:
    """The length of a compressed answer to a browser could reveal a part of it (BREACH)."""
    small = client.get(URL, {"limit": "1"}, headers={"accept-encoding": "gzip"})
    browser = Client()
    browser.force_login(user)
    for answer in (small, browser.get(URL, headers={"accept-encoding": "gzip"})):
        assert "Content-Encoding" not in answer


def test_the_json_schema_of_reports_is_compressed(client: Client) -> None:
    answer = client.get("/api/v1/reports/schema", headers={"accept-encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"


def test_an_export_is_compressed_while_it_is_sent(runs: None, client: Client) -> None:
    url = "/api/v1/series/circle/export"
    plain = b"".join(client.get(url))
    for encoding, unpack in UNPACK.items():
        assert unpack(b"".join(client.get(url, headers={"accept-encoding": encoding}))) == plain


def test_answers_are_private_and_errors_are_not_stored(runs: None, client: Client) -> None:
    assert client.get(URL)["Cache-Control"] == "private, no-cache"
    assert client.get(f"{URL}?limit=0")["Cache-Control"] == "no-store"
    assert client.post("/api/v1/forecasts/rank")["Cache-Control"] == "no-store"


def test_without_a_token_the_answer_says_how_to_authenticate(db: None) -> None:
    answer = Client().get(URL)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, 'Bearer realm="gridcast"')


def test_a_request_has_the_id_of_the_client_in_answer_and_log(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "django.request"):
        answer = client.get(f"{URL}?limit=0", headers={"x-request-id": "job-81/try.2"})
    assert (answer["X-Request-ID"], answer.json()["request"]) == ("job-81/try.2", "job-81/try.2")
    assert client.get("/login/", headers={"x-request-id": "a"})["X-Request-ID"] == "a"


@pytest.mark.parametrize("given", ["", "a b", "x" * 101, "a\nb", "é", "<script>", "-a"])
def test_a_malformed_id_is_replaced(client: Client, given: str) -> None:
    made = [client.get(URL, headers={"x-request-id": given})["X-Request-ID"] for _ in range(2)]
    assert [len(key) for key in made] == [32, 32]
    assert made[0] != made[1]


def test_the_standing_at_the_rate_limit_is_in_the_answer(client: Client, settings: Any) -> None:
    settings.GRIDCAST_API_REQUESTS = 5
    answers = [client.get(URL) for _ in range(12)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert answers[0]["RateLimit-Policy"].split(", ")[0] == '"requests";q=5;w=10'
    assert answers[0]["RateLimit"].startswith('"requests";r=')
    assert refused[0].json()["code"] == "too_many_requests"
    assert 1 <= int(refused[0]["Retry-After"]) <= 10


def test_the_most_requested_paths_are_matched_first() -> None:
    of_api = get_resolver().url_patterns[0]
    assert isinstance(of_api, URLResolver)
    first = {str(pattern.pattern) for pattern in of_api.url_patterns[:3]}
    assert first == {"forecasts", "reports", "reporters/<reporter>/exchange"}
