"""The operations for agents over HTTP: enrolment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from monitor.fleet.enrolment import MAX_ATTEMPTS_PER_ADDRESS, create_code
from monitor.fleet.signatures import METHODS, server_fingerprint, server_public_key
from monitor.models import EnrolmentAttempt, Reporter, ReporterKey
from tests.monitor.fleet.agents import ROOT, SiteAgent, remote_reporter

pytestmark = pytest.mark.django_db


@pytest.fixture
def reporter(db: None) -> Reporter:
    return remote_reporter()


def problem(response: Any) -> tuple[int, str]:
    assert response["content-type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


@pytest.mark.parametrize("method", METHODS)
def test_an_agent_enrols_over_http(reporter: Reporter, tmp_path: Path, method: str) -> None:
    agent = SiteAgent(reporter, tmp_path, method)
    code = create_code(reporter, None, timezone.now())
    answers = [agent.enrol(code) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    expected = {
        "reporter": "ncsa",
        "server_key": server_public_key(method),
        "server_fingerprint": server_fingerprint(),
        "exchange_seconds": 60,
    }
    assert answers[0].json() == answers[1].json() == expected
    assert ReporterKey.objects.get().hostname == "login1.example.org"


def test_a_refused_enrolment_is_a_problem_with_a_code(reporter: Reporter, tmp_path: Path) -> None:
    agent = SiteAgent(reporter, tmp_path)
    code = create_code(reporter, None, timezone.now())
    assert problem(agent.enrol("AAAA-BBBB")) == (403, "invalid_code")
    assert problem(agent.enrol(code, signature="MA==")) == (403, "invalid_signature")
    assert problem(agent.enrol(code, public_key="none")) == (422, "invalid")
    assert problem(agent.enrol(code, method="rot13")) == (422, "invalid")
    assert problem(agent.enrol(code, hostname="x" * 300)) == (422, "invalid")
    assert problem(agent.client.post(f"{ROOT}/enrol", b"{", content_type="application/json"))[0] == 400
    assert not ReporterKey.objects.exists()


def test_a_client_that_guesses_codes_has_to_wait(reporter: Reporter, tmp_path: Path) -> None:
    agent = SiteAgent(reporter, tmp_path)
    guesses = [agent.enrol(f"AAAA-{number}").status_code for number in range(MAX_ATTEMPTS_PER_ADDRESS)]
    assert set(guesses) == {403}
    answer = agent.enrol(create_code(reporter, None, timezone.now()))
    assert problem(answer) == (429, "too_many_attempts")
    assert 0 < int(answer["retry-after"]) <= 900


def test_behind_a_proxy_the_client_is_the_last_forwarded_address(
    reporter: Reporter, tmp_path: Path, settings: LazySettings
) -> None:
    agent = SiteAgent(reporter, tmp_path)
    agent.client = Client(headers={"x-forwarded-for": "198.51.100.1, 192.0.2.9"})
    agent.enrol("AAAA")
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    agent.enrol("AAAA")
    assert set(EnrolmentAttempt.objects.values_list("address", flat=True)) == {"127.0.0.1", "192.0.2.9"}
