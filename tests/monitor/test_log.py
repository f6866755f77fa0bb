"""Levels of the answers that Django logs."""

from __future__ import annotations

import logging

import pytest

from monitor.log import EVERY_SECONDS, BusyAnswers, LineFormatter


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


def test_the_filter_is_that_of_djangos_requests() -> None:
    assert [type(each) for each in logging.getLogger("django.request").filters] == [BusyAnswers]


def test_the_keys_in_addresses_of_pings_are_not_logged() -> None:
    formatter = LineFormatter("%(message)s")
    record = logging.LogRecord(
        "django.request", logging.WARNING, "", 0, "Not Found: %s", ("/api/v1/ping/gcping_sEcr-t_1/3",), None
    )
    assert formatter.format(record) == "Not Found: /api/v1/ping/gcping_.../3"
