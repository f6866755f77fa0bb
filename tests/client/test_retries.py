"""Which failures are tried again, when, and how often."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from gridcast_client import (
    Client,
    GridcastError,
    InvalidInput,
    NoForecast,
    NotAllowed,
    Overloaded,
    Refused,
    TimedOut,
    Unreachable,
    Untrusted,
    UnusableAnswer,
)
from tests.client.in_process import URL, Answers, document, pauses, problem

RANKING = document('{"quantile": 0.9, "at": "2026-03-01T12:00:00Z", "ranked": [], "unranked": []}')


def test_an_overloaded_server_is_asked_again_after_what_it_says() -> None:
    noted, waits = pauses()
    answers = Answers(problem(429, "busy", retry_after="7"), problem(503, "busy", retry_after="3"), RANKING)
    client = Client(URL, transport=answers, **waits)
    assert client.rank(["a"]).quantile == 0.9
    assert noted == [7 + 0.25, 3 + 0.5]


def test_a_date_in_retry_after_counts_from_now() -> None:
    noted, waits = pauses()
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    Client(URL, transport=Answers(problem(503, "busy", retry_after=later), RANKING), **waits).rank(["a"])
    assert 15 < noted[0] <= 20.25


def test_pauses_double_and_are_random() -> None:
    noted, waits = pauses()
    client = Client(URL, transport=Answers(Unreachable("away")), tries=4, timeout_seconds=600, **waits)
    with pytest.raises(Unreachable, match=r"POST https://grid.example.org/api/v1/forecasts/rank: away"):
        client.rank(["a"])
    assert noted == [0.25, 0.5, 1.0]


def test_a_pause_beyond_the_time_limit_is_not_made() -> None:
    noted, waits = pauses()
    answers = Answers(problem(503, "busy", retry_after="3600"))
    with pytest.raises(Overloaded) as raised:
        Client(URL, transport=answers, timeout_seconds=30, **waits).rank(["a"])
    assert raised.value.retry_after_seconds == 3600
    assert noted == []
    assert len(answers.requests) == 1


def test_every_try_has_the_rest_of_the_time_limit() -> None:
    _, waits = pauses()
    answers = Answers(Unreachable("away"), RANKING)
    Client(URL, transport=answers, timeout_seconds=30, **waits).rank(["a"])
    assert 0 < answers.limits[1] < answers.limits[0] <= 30


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(401, "not_authenticated"), NotAllowed),
        (problem(403, "not_allowed"), NotAllowed),
        (problem(404, "unknown_series"), Refused),
        (problem(409, "too_few"), NoForecast),
        (problem(409, "site_down"), NoForecast),
        (problem(409, "ambiguous"), Refused),
        (problem(422, "invalid"), Refused),
        (Untrusted("by an unknown authority"), Untrusted),
        (TimedOut("no whole answer within 30 s"), TimedOut),
        (document("[]", 301), UnusableAnswer),
    ],
)
def test_what_the_same_request_cannot_mend_is_asked_once(answer: object, kind: type[GridcastError]) -> None:
    noted, waits = pauses()
    answers = Answers(answer)  # type: ignore[arg-type]  # of the table above
    with pytest.raises(kind) as raised:
        Client(URL, transport=answers, **waits).rank(["a"])
    assert type(raised.value) is kind
    assert (len(answers.requests), noted) == (1, [])


def test_an_error_names_the_tries_and_the_request() -> None:
    _, waits = pauses()
    answers = Answers(problem(503, "depot_away"))
    with pytest.raises(Overloaded) as raised:
        Client(URL, transport=answers, tries=2, **waits).ask("circle")
    identity = answers.requests[0].headers["X-Request-ID"]
    assert len(identity) == 32
    assert answers.requests[1].headers["X-Request-ID"] == identity
    text = f"503 depot_away: because; tried 2 times (request {identity})"
    assert str(raised.value) == f"GET {URL}/api/v1/forecasts: {text}"
    assert (raised.value.code, raised.value.again) == ("depot_away", True)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<html>", "expected JSON, got '<html>'"),
        ("[]", "the answer: expected an object, got a list"),
        ("[" * 100_000, "expected JSON"),
        (
            '{"quantile": 0.9, "at": "2026-03-01T12:00:00Z", "ranked": [{}], "unranked": []}',
            "candidate: expected",
        ),
        (
            '{"quantile": true, "at": "2026-03-01T12:00:00Z", "ranked": [], "unranked": []}',
            "quantile: expected a n",
        ),
        (
            '{"quantile": 0.9, "at": "2026-03-01T12:00:00", "ranked": [], "unranked": []}',
            "at: expected a time",
        ),
        (
            '{"quantile": 0.9, "at": "2026-13-01T12:00:00Z", "ranked": [], "unranked": []}',
            "at: expected a time",
        ),
        (
            '{"quantile": 0.9, "at": "2026-03-01T12:00:00Z", "ranked": {}, "unranked": []}',
            "ranked: expected a list",
        ),
    ],
)
def test_a_malformed_answer_is_refused_with_the_field(body: str, said: str) -> None:
    with pytest.raises(UnusableAnswer) as raised:
        Client(URL, transport=Answers(document(body))).rank(["a"])
    assert said in str(raised.value)
    assert "check that the URL is that of gridcast" in str(raised.value)


def test_fields_that_the_client_does_not_know_are_ignored() -> None:
    body = (
        '{"quantile": 0.9, "at": "2026-03-01T12:00:00.1234567+01:00", "ranked": [], "unranked": [], "x": 1}'
    )
    ranking = Client(URL, transport=Answers(document(body))).rank(["a"])
    assert ranking.at == datetime(2026, 3, 1, 11, 0, 0, 123456, tzinfo=UTC)


def test_control_characters_of_a_server_do_not_reach_the_terminal() -> None:
    hostile = document('{"code": "x", "detail": "\\u001b[2Jgone\\nnow' + "!" * 1000 + '"}', 422)
    with pytest.raises(Refused) as raised:
        Client(URL, transport=Answers(hostile)).rank(["a"])
    assert "\x1b" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 700


def test_one_name_may_stand_for_a_list() -> None:
    answers = Answers(RANKING)
    client = Client(URL, transport=answers)
    client.rank({"a": {"compute": "beta", "source": ["alpha"]}, "b": ["beta", "alpha"], "c": "preco"})
    assert json.loads(answers.requests[0].body or b"")["candidates"] == [
        {"key": "a", "roles": {"compute": ["beta"], "source": ["alpha"]}},
        {"key": "b", "resources": ["beta", "alpha"]},
        {"key": "c", "series": "preco"},
    ]
    with pytest.raises(InvalidInput, match="candidates: expected several, got a text"):
        client.rank("preco")


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at: expected a time with its zone, got 2026-03-01T12:00:00"):
        Client(URL, transport=Answers(RANKING)).rank(["a"], at=datetime(2026, 3, 1, 12))  # noqa: DTZ001


@pytest.mark.parametrize(("timeout_seconds", "preference"), [(30, "wait=5"), (8, "wait=2"), (2, None)])
def test_the_server_is_asked_to_wait_for_a_first_forecast(
    timeout_seconds: float, preference: str | None
) -> None:
    answers = Answers(RANKING)
    client = Client(URL, transport=answers, timeout_seconds=timeout_seconds)
    client.rank(["a"])
    assert answers.requests[0].headers.get("Prefer") == preference
    with pytest.raises(UnusableAnswer):  # this server answers everything with a ranking
        list(client.sites())
    assert "Prefer" not in answers.requests[1].headers
