"""While the depot is away every answer says so, and nothing needs the depot to say it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from django.conf import LazySettings
from django.db import InterfaceError, OperationalError
from django.test import Client

from monitor.pages.outage import is_outage
from monitor.supervisor.status import ServiceStatus, SupervisorStatus, write_status


@pytest.fixture
def visitor() -> Client:
    """Somebody with a session, which only the depot could tell."""
    browser = Client()
    browser.cookies["sessionid"] = "x" * 32
    return browser


def test_a_page_says_what_is_going_on_and_tries_again(depot_away: None, visitor: Client) -> None:
    answer = visitor.get("/")
    text = answer.content.decode()
    assert answer.status_code == 503
    assert answer["Retry-After"] == "3"
    assert "The depot does not answer" in text
    assert '<meta http-equiv="refresh" content="3">' in text
    assert "src=" not in text  # it needs nothing from anywhere


def test_the_page_tells_what_the_supervisor_does_about_it(
    depot_away: None, visitor: Client, settings: LazySettings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    (tmp_path / "run").mkdir()
    now = datetime.now(UTC)
    down = ServiceStatus("restarting", now, restarts=3, last_exit="killed by SIGKILL")
    write_status(tmp_path / "run" / "supervisor.json", SupervisorStatus(1, now, {"postgres": down}))
    text = visitor.get("/").content.decode()
    assert "the supervisor is bringing it back" in text
    assert "restarting, restarted 3 times: killed by SIGKILL" in text


def test_a_part_of_an_open_page_gets_a_line_and_not_a_page(depot_away: None, visitor: Client) -> None:
    answer = visitor.get("/", headers={"HX-Request": "true"})
    text = answer.content.decode()
    assert answer.status_code == 503
    assert "The depot does not answer." in text
    assert "<html" not in text
    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#banner", "innerHTML")


@pytest.mark.parametrize("path", ["/api/v1/series", "/api/v1/runs"])
def test_a_program_gets_a_problem(depot_away: None, visitor: Client, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 503
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "depot_away"


def test_who_sends_a_report_is_asked_to_come_again(depot_away: None) -> None:
    program = Client(headers={"authorization": "Bearer gcast_some"})
    answer = program.post("/api/v1/reports", b"{}", "application/json")
    assert (answer.status_code, answer.json()["code"]) == (503, "depot_away")
    assert int(answer["Retry-After"]) > 0


def test_logging_in_says_what_is_going_on(depot_away: None) -> None:
    assert Client().post("/login/", {"username": "a", "password": "b"}).status_code == 503


def test_a_page_that_does_not_exist_says_what_is_going_on_too(depot_away: None, visitor: Client) -> None:
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
def test_only_an_absent_depot_is_an_outage(error: Exception | None, verdict: bool) -> None:
    assert is_outage(error) is verdict
