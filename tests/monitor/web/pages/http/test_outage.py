"""While the database is unreachable every answer says so, without using the database."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from django.conf import LazySettings
from django.db import InterfaceError, OperationalError
from django.test import Client

from monitor.operations.supervisor.status import ServiceStatus, SupervisorStatus, write_status
from monitor.web.pages.http.outage import is_outage


@pytest.fixture
def visitor() -> Client:
    """A browser with a session cookie that cannot be checked."""
    browser = Client()
    browser.cookies["sessionid"] = "x" * 32
    return browser


def test_a_page_says_that_the_database_is_unreachable_and_reloads(depot_away: None, visitor: Client) -> None:
    answer = visitor.get("/")
    text = answer.content.decode()
    assert answer.status_code == 503
    assert answer["Retry-After"] == "3"
    assert "Database unreachable" in text
    assert '<meta http-equiv="refresh" content="3">' in text
    assert "src=" not in text  # the page is self-contained


def test_the_page_shows_what_the_supervisor_does(
    depot_away: None, visitor: Client, settings: LazySettings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    (tmp_path / "run").mkdir()
    now = datetime.now(UTC)
    down = ServiceStatus("restarting", now, restarts=3, last_exit="killed by SIGKILL")
    write_status(tmp_path / "run" / "supervisor.json", SupervisorStatus(1, now, {"postgres": down}))
    text = visitor.get("/").content.decode()
    assert "the supervisor is restarting it" in text
    assert "restarting, restarted 3 times: killed by SIGKILL" in text


def test_an_open_page_gets_a_banner(depot_away: None, visitor: Client) -> None:
    answer = visitor.get("/", headers={"HX-Request": "true"})
    text = answer.content.decode()
    assert answer.status_code == 503
    assert "Database unreachable." in text
    assert "<html" not in text
    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#banner", "innerHTML")


@pytest.mark.parametrize("path", ["/api/v1/series", "/api/v1/runs"])
def test_the_api_answers_with_a_problem(depot_away: None, visitor: Client, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 503
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "depot_away"


def test_a_sender_of_reports_is_asked_to_retry(depot_away: None) -> None:
    program = Client(headers={"authorization": "Bearer gcast_some"})
    answer = program.post("/api/v1/reports", b"{}", "application/json")
    assert (answer.status_code, answer.json()["code"]) == (503, "depot_away")
    assert int(answer["Retry-After"]) > 0


def test_logging_in_is_answered_with_503(depot_away: None) -> None:
    assert Client().post("/login/", {"login": "a", "password": "b"}).status_code == 503


def test_a_missing_page_is_answered_with_503_too(depot_away: None, visitor: Client) -> None:
    visitor.raise_request_exception = False
    assert visitor.get("/no-such-page").status_code == 503


def caused(error: Exception, cause: Exception | None) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (caused(OperationalError("connection refused"), psycopg.OperationalError()), True),
        (caused(OperationalError("terminating"), psycopg.errors.AdminShutdown()), True),
        (caused(OperationalError("starting up"), psycopg.errors.CannotConnectNow()), True),
        (caused(OperationalError("too many"), psycopg.errors.TooManyConnections()), True),
        (caused(InterfaceError("closed"), psycopg.InterfaceError()), True),
        (caused(OperationalError("deadlock"), psycopg.errors.DeadlockDetected()), False),
        (caused(OperationalError("timeout"), psycopg.errors.QueryCanceled()), False),
        (ValueError("a bug"), False),
        (None, False),
    ],
)
def test_only_an_unreachable_database_is_an_outage(error: Exception | None, verdict: bool) -> None:
    assert is_outage(error) is verdict
