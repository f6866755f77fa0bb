"""Levels of the answers that Django logs."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from monitor.core.log import EVERY_SECONDS, BusyAnswers, LineFormatter, Refusals, RefusedHosts
from monitor.models.role import UserRole
from tests.monitor.web.pages import builders


def record_of(status: int) -> logging.LogRecord:
    error = RuntimeError("broken")
    record = logging.LogRecord(
        "django.request", logging.ERROR, "", 0, "%s", ("/api",), (type(error), error, None)
    )
    record.status_code = status
    return record


@pytest.mark.parametrize(
    ("status", "level", "has_traceback"),
    [(404, "ERROR", True), (500, "ERROR", True), (503, "WARNING", False), (507, "WARNING", False)],
)
def test_a_busy_answer_is_a_warning_of_one_line_and_other_records_stay(
    status: int, level: str, has_traceback: bool
) -> None:
    record = record_of(status)
    assert BusyAnswers().filter(record)
    assert (record.levelname, record.exc_info is not None) == (level, has_traceback)


def test_busy_answers_are_logged_once_a_minute() -> None:
    seconds = [100.0]
    busy = BusyAnswers(steady=lambda: seconds[0])
    logged = []
    for seconds[0] in (100.0, 101.0, 100.0 + EVERY_SECONDS):
        logged += [busy.filter(record_of(503)), busy.filter(record_of(500))]
    assert logged == [True, True, False, True, True, True]


def test_the_filters_are_those_of_djangos_requests() -> None:
    assert {type(each) for each in logging.getLogger("django.request").filters} == {BusyAnswers, Refusals}


@pytest.mark.parametrize(
    ("status", "line"), [(400, "/api: broken"), (403, "/api: broken"), (404, "/api: broken"), (500, "/api")]
)
def test_a_refusal_is_one_line_with_its_reason_and_an_error_keeps_its_traceback(
    status: int, line: str
) -> None:
    record = record_of(status)
    assert Refusals().filter(record)
    assert (record.getMessage(), record.exc_info is None) == (line, status < 500)


@pytest.mark.django_db
def test_a_page_that_roles_do_not_permit_is_logged_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    builders.browser_of("olga", UserRole.OPERATOR).get("/access/")
    [record] = [each for each in caplog.records if each.name == "django.request"]
    words = "Forbidden (Permission denied): /access/: Only administrators see and change accounts."
    assert LineFormatter("%(message)s").format(record) == words


def test_the_keys_in_addresses_of_pings_are_not_logged() -> None:
    formatter = LineFormatter("%(message)s")
    record = logging.LogRecord(
        "django.request", logging.WARNING, "", 0, "Not Found: %s", ("/api/v1/ping/gcping_sEcr-t_1/3",), None
    )
    assert formatter.format(record) == "Not Found: /api/v1/ping/gcping_.../3"


@pytest.mark.parametrize("path", ["/login/", "/api/v1/series"])
def test_a_request_for_another_host_is_refused_with_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture, path: str
) -> None:
    logger = logging.getLogger("django.security.DisallowedHost")
    hosts = RefusedHosts(steady=lambda: 0.0)
    installed = logger.filters[:]  # more than one where a Celery worker in this process set Django up again
    assert {type(each) for each in installed} == {RefusedHosts}
    logger.filters[:] = [hosts]
    try:
        answer = Client(raise_request_exception=False).get(path, headers={"host": "evil.example"})
        Client(raise_request_exception=False).get(path, headers={"host": "evil.example"})
    finally:
        logger.filters[:] = installed
    assert answer.status_code == 400
    assert b"Traceback" not in answer.content
    assert b"ALLOWED_HOSTS" not in answer.content  # the setting is GRIDCAST_HOSTS
    (record,) = [record for record in caplog.records if record.name == logger.name]
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert record.getMessage().endswith("You may need to add 'evil.example' to GRIDCAST_HOSTS.")


def test_a_line_and_a_traceback_are_bounded() -> None:
    def fails(depth: int) -> None:
        if depth:
            fails(depth - 1)
        raise ValueError("x" * 100_000)

    formatter = LineFormatter("%(message)s")
    try:
        fails(200)
    except ValueError as error:
        failure = (type(error), error, error.__traceback__)
    record = logging.LogRecord("a", logging.ERROR, "", 0, "user %s", ("y" * 100_000,), failure)
    lines = formatter.format(record).splitlines()
    assert max(map(len, lines)) < 2_100
    assert lines[0].endswith("... (100,005 characters)")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1].startswith("ValueError: xxx")
    assert len(lines) < 200
