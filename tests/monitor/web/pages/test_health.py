"""Health checks for load balancers, and the banner of the pages."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from monitor.models import Series
from monitor.operations.supervisor.status import ServiceStatus, SupervisorStatus, write_status
from monitor.runs.ledger import heartbeats
from tests.monitor.web.pages.conftest import Grid


def test_healthz_needs_no_database(depot_away: None) -> None:
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"alive\n")


@pytest.mark.django_db
def test_readyz_is_200_with_database_and_broker() -> None:
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"ready": True, "depot": "ok", "broker": "ok"}


def test_readyz_is_503_without_the_database(depot_away: None) -> None:
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["ready"] is False
    assert "PostgreSQL" in answer.json()["depot"]
    assert answer.json()["broker"] == "ok"


def test_every_page_has_a_banner_while_the_scheduler_has_no_heartbeat(grid: Grid, client: Client) -> None:
    heartbeats.record("beat", timezone.now() - timedelta(seconds=90))
    for path in ("/", "/series/circle-ring/", "/banner/"):
        assert re.search(r"Scheduler: no heartbeat for \d+ min", client.get(path).content.decode()), path


def test_the_banner_disappears_when_the_problem_is_over(grid: Grid, client: Client) -> None:
    heartbeats.record("beat", timezone.now())
    assert client.get("/banner/").content.strip() == b""


def test_the_login_page_has_no_banner(grid: Grid) -> None:
    heartbeats.record("beat", timezone.now() - timedelta(seconds=90))
    assert "scheduler" not in Client().get("/login/").content.decode()


@pytest.fixture
def supervisor_file(settings: LazySettings, tmp_path: object) -> object:
    settings.VAR_DIR = tmp_path
    file = settings.VAR_DIR / "run" / "supervisor.json"
    file.parent.mkdir()
    return file


def test_the_banner_lists_restarting_services(
    grid: Grid, client: Client, supervisor_file: object, now: datetime
) -> None:
    services = {"worker": ServiceStatus("restarting", now, restarts=2), "web": ServiceStatus("up", now)}
    write_status(supervisor_file, SupervisorStatus(1, now, services))  # type: ignore[arg-type]
    text = client.get("/banner/").content.decode()
    assert "worker is restarting (attempt 2)" in text
    assert "web is" not in text


@pytest.mark.parametrize("content", ["", "[]", '{"services": {"web": {}}}'])
def test_an_unreadable_status_file_breaks_no_page(
    grid: Grid, client: Client, supervisor_file: object, content: str
) -> None:
    supervisor_file.write_text(content)  # type: ignore[attr-defined]
    assert client.get("/").status_code == 200


def test_a_component_that_was_never_seen_raises_the_banner(grid: Grid, client: Client) -> None:
    assert client.get("/banner/").content.strip() == b""  # it may still start
    Series.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    text = client.get("/banner/").content.decode()
    assert "Scheduler: never seen" in text
    assert "Home reporter: never seen" in text
